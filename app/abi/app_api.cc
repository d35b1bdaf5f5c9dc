// Implements wherry_app.h over app/chat.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "app/abi/calls.h"
#include "app/chat/chat_tools.h"
#include "app/load/app.h"
#include "app/load/open.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"
#include "support/thread_limit.h"
#include "wherry_app.h"

struct wherry_app {
  std::unique_ptr<wherry::app::App> app;
};

namespace {

using wherry::app::copied;
using wherry::app::guarded;
using wherry::app::require;

thread_local std::string last_error;

}  // namespace

int wherry::app::failed(int status, const std::string& message) {
  last_error = message;
  return status;
}

char* wherry::app::copied(const std::string& text) {
  auto* result = static_cast<char*>(std::malloc(text.size() + 1));
  if (result == nullptr) throw std::bad_alloc();
  std::memcpy(result, text.c_str(), text.size() + 1);
  return result;
}

int wherry_app_abi_version(void) { return WHERRY_APP_ABI_VERSION; }

const char* wherry_app_last_error(void) { return last_error.c_str(); }

int wherry_app_open(const char* folder, const char* options_json,
                    const wherry_app_progress* progress, wherry_app** out) {
  return guarded([&] {
    require(folder, "folder");
    require(out, "out");
    auto result = std::make_unique<wherry_app>();
    result->app = wherry::app::open_app(folder, options_json ? options_json : "", progress);
    *out = result.release();
  });
}

int wherry_app_start(wherry_app* app, const char* request_json, size_t length,
                     wherry_app_on_chunk on_chunk, void* context, int64_t* id) {
  return guarded([&] {
    require(app, "app");
    require(request_json, "request_json");
    require(reinterpret_cast<const void*>(on_chunk), "on_chunk");
    require(id, "id");
    *id = app->app->start(std::string(request_json, length),
                          [on_chunk, context](const std::string& json, bool last) {
                            on_chunk(context, json.c_str(), json.size(), last);
                          });
  });
}

int wherry_app_abort(wherry_app* app, int64_t id) {
  return guarded([&] {
    require(app, "app");
    if (!app->app->abort(id)) {
      throw wherry::Error(WHERRY_NOT_FOUND, "no request " + std::to_string(id) + " runs");
    }
  });
}

int wherry_app_stats(wherry_app* app, char** json) {
  return guarded([&] {
    require(app, "app");
    require(json, "json");
    *json = copied(app->app->stats());
  });
}

int wherry_app_trim(wherry_app* app) {
  return guarded([&] {
    require(app, "app");
    app->app->trim();
  });
}

int wherry_app_limit_threads(int most) {
  return guarded([&] {
    if (most < 0) {
      throw wherry::Error(WHERRY_INVALID_ARGUMENT,
                          "the limit is " + std::to_string(most) +
                              " threads; it takes a number from 1, or 0 for none");
    }
    wherry::thread_limit() = most;
  });
}

void wherry_app_free(void* memory) { std::free(memory); }

void wherry_app_close(wherry_app* app) { delete app; }

int wherry_app_render(wherry_app* app, const char* request_json, size_t length, char** text,
                      size_t* text_length) {
  return guarded([&] {
    require(app, "app");
    require(request_json, "request_json");
    require(text, "text");
    require(text_length, "text_length");
    wherry::app::Value request;
    try {
      request = wherry::json::from_json(
          wherry::unicode::well_formed(std::string_view(request_json, length)),
          wherry::json::Halves::kKept);
    } catch (const wherry::json::Failure& failure) {
      throw wherry::Error(WHERRY_INVALID_ARGUMENT, failure.what());
    }
    const wherry::app::Fields fields = wherry::app::checked_chat(request);
    const wherry::app::Model& model = app->app->model();
    const std::string result =
        wherry::app::ChatTools(fields, model.chat_format, model.vision).rendered(nullptr);
    *text = copied(result);
    *text_length = result.size();
  });
}

int wherry_app_encode(wherry_app* app, const char* text, size_t length, int add_special_tokens,
                      int32_t** ids, size_t* n) {
  return guarded([&] {
    require(app, "app");
    require(text, "text");
    require(ids, "ids");
    require(n, "n");
    const auto result = app->app->model().abilities.tokenizer->encode(
        std::string_view(text, length), add_special_tokens != 0);
    auto* kept = static_cast<int32_t*>(std::malloc(result.size() * sizeof(int32_t) + 1));
    if (kept == nullptr) throw std::bad_alloc();
    std::copy(result.begin(), result.end(), kept);
    *ids = kept;
    *n = result.size();
  });
}

int wherry_app_decode(wherry_app* app, const int32_t* ids, size_t n, int skip_special_tokens,
                      char** text, size_t* length) {
  return guarded([&] {
    require(app, "app");
    if (n > 0) require(ids, "ids");
    require(text, "text");
    require(length, "length");
    const std::string result = app->app->model().abilities.tokenizer->decode(
        std::vector<int32_t>(ids, ids + n), skip_special_tokens != 0);
    *text = copied(result);
    *length = result.size();
  });
}
