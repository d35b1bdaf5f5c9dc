// wherry_app.h over the core alone, for tests of what lies above it: a text is the numbers of its
// tokens with spaces between them, so that no tokenizer and no template takes part.
//
// {"prompt": "3 1 4", "max_tokens": 8, "stream": false} or "messages" with one such content.
#include <tvm/ffi/extra/json.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "wherry_app.h"

namespace {

namespace json = tvm::ffi::json;

thread_local std::string last_error;

int failed(int status, const std::string& message) {
  last_error = message;
  return status;
}

struct Request {
  wherry_app_on_chunk on_chunk;
  void* context;
  bool stream, chat;
  std::string text;
};

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string part(const Request& request, const std::string& text, const std::string& finish) {
  const std::string field =
      !request.chat ? "\"text\": " + quoted(text)
                    : std::string(request.stream ? "\"delta\"" : "\"message\"") +
                          ": {\"role\": \"assistant\", \"content\": " + quoted(text) + "}";
  return "{\"object\": \"stand-in\", \"choices\": [{\"index\": 0, " + field +
         ", \"finish_reason\": " + (finish.empty() ? "null" : quoted(finish)) + "}]}";
}

std::string error_object(const std::string& message, const std::string& code) {
  return "{\"error\": {\"message\": " + quoted(message) +
         ", \"type\": \"invalid_request_error\", \"param\": \"prompt\", \"code\": " + quoted(code) +
         "}}";
}

void give(const Request& request, const std::string& text, bool last) {
  request.on_chunk(request.context, text.c_str(), text.size(), last ? 1 : 0);
}

}  // namespace

struct wherry_app {
  wherry_model* model = nullptr;
  wherry_engine* engine = nullptr;
  std::thread thread;
  std::mutex mutex;
  std::map<uint64_t, Request> requests;
  uint64_t next = 1;
  std::atomic<bool> closing{false};

  void take(const wherry_event& event) {
    Request request;
    {
      std::lock_guard<std::mutex> lock(mutex);
      auto found = requests.find(event.id);
      if (found == requests.end()) return;
      if (event.token >= 0 && event.finish != WHERRY_STOP) {
        found->second.text += (found->second.text.empty() ? "" : " ") + std::to_string(event.token);
      }
      request = found->second;
      if (event.finish != WHERRY_RUNNING) requests.erase(found);
    }
    const bool last = event.finish != WHERRY_RUNNING;
    if (event.finish == WHERRY_ABORTED)
      return give(request, error_object("ended", "aborted"), true);
    if (request.stream) {
      const std::string token = event.token < 0 ? "" : std::to_string(event.token) + " ";
      return give(request, part(request, token, last ? "length" : ""), last);
    }
    if (last) give(request, part(request, request.text, "length"), true);
  }

  void run() {
    std::vector<wherry_event> events(64);
    for (;;) {
      size_t n = 0;
      if (wherry_engine_wait(engine, events.data(), events.size(), 50, &n) != WHERRY_OK) return;
      for (size_t i = 0; i < n; ++i) take(events[i]);
      std::lock_guard<std::mutex> lock(mutex);
      if (closing && requests.empty()) return;
    }
  }
};

namespace {

bool field(const json::Object& object, const char* name, json::Value* out) {
  auto found = object.find(tvm::ffi::String(name));
  if (found == object.end()) return false;
  *out = (*found).second;
  return true;
}

std::string text_of(const json::Object& object, const char* name) {
  json::Value value;
  return field(object, name, &value) ? std::string(value.cast<tvm::ffi::String>()) : std::string();
}

int64_t number_of(const json::Object& object, const char* name, int64_t usual) {
  json::Value value;
  return field(object, name, &value) ? value.cast<int64_t>() : usual;
}

}  // namespace

extern "C" {

int wherry_app_abi_version(void) { return WHERRY_APP_ABI_VERSION; }
const char* wherry_app_last_error(void) { return last_error.c_str(); }

int wherry_app_open(const char* folder, const char* options_json,
                    const wherry_app_progress* progress, wherry_app** out) {
  auto options = json::Parse(tvm::ffi::String(options_json)).cast<json::Object>();
  for (int64_t done = 0; progress != nullptr && done <= 4; ++done) {
    if (progress->report(progress->context, "files", done, 4) != 0) {
      return failed(WHERRY_CANCELLED, "cancelled");
    }
  }
  auto app = std::make_unique<wherry_app>();
  std::string library = std::string(folder) + "/model.so";
  const std::string linked = text_of(options, "system_library_prefix");
  if (!linked.empty()) library = "system:" + linked;
  int status = wherry_model_load(library.c_str(), folder, "cpu", "{\"threads\": 1}", &app->model);
  if (status != WHERRY_OK) return failed(status, wherry_last_error());
  const std::string config =
      "{\"max_batch\": " + std::to_string(number_of(options, "max_batch", 8)) + "}";
  status = wherry_engine_create(app->model, nullptr, config.c_str(), &app->engine);
  if (status == WHERRY_OK) status = wherry_engine_start(app->engine);
  if (status != WHERRY_OK) {
    last_error = wherry_last_error();
    if (app->engine != nullptr) wherry_engine_destroy(app->engine);
    wherry_model_free(app->model);
    return status;
  }
  app->thread = std::thread([raw = app.get()] { raw->run(); });
  *out = app.release();
  return WHERRY_OK;
}

int wherry_app_start(wherry_app* app, const char* request_json, size_t length,
                     wherry_app_on_chunk on_chunk, void* context, int64_t* id) {
  auto fields = json::Parse(tvm::ffi::String(request_json, length)).cast<json::Object>();
  json::Value value;
  Request request{on_chunk, context, field(fields, "stream", &value) && value.cast<bool>(),
                  field(fields, "messages", &value), ""};
  std::string prompt = text_of(fields, request.chat ? "" : "prompt");
  if (request.chat) {
    prompt = text_of(value.cast<json::Array>()[0].cast<json::Object>(), "content");
  }
  std::istringstream words(prompt);
  std::vector<int32_t> tokens;
  for (int32_t token; words >> token;) tokens.push_back(token);
  wherry_params params;
  wherry_params_init(&params);
  params.temperature = 0;
  params.max_tokens = static_cast<int32_t>(number_of(fields, "max_tokens", 8));
  std::lock_guard<std::mutex> lock(app->mutex);
  const uint64_t number = app->next++;
  *id = static_cast<int64_t>(number);
  app->requests[number] = request;
  if (wherry_engine_add(app->engine, number, tokens.data(), tokens.size(), &params) != WHERRY_OK) {
    app->requests.erase(number);
    give(request, error_object("refused", "invalid"), true);
  }
  return WHERRY_OK;
}

int wherry_app_abort(wherry_app* app, int64_t id) {
  return wherry_engine_abort(app->engine, static_cast<uint64_t>(id));
}

int wherry_app_stats(wherry_app* app, char** text) {
  wherry_stats stats{};
  stats.size = sizeof stats;
  int status = wherry_engine_stats(app->engine, &stats);
  if (status != WHERRY_OK) return failed(status, wherry_last_error());
  *text =
      strdup(("{\"model\": \"stand-in\", \"pages_total\": " + std::to_string(stats.pages_total) +
              ", \"pages_free\": " + std::to_string(stats.pages_free) + "}")
                 .c_str());
  return WHERRY_OK;
}

int wherry_app_trim(wherry_app* app) { return wherry_engine_clear_cache(app->engine); }
void wherry_app_free(void* memory) { free(memory); }

void wherry_app_close(wherry_app* app) {
  if (app == nullptr) return;
  std::vector<uint64_t> running;
  {
    std::lock_guard<std::mutex> lock(app->mutex);
    for (const auto& [id, request] : app->requests) running.push_back(id);
    app->closing = true;
  }
  for (uint64_t id : running) wherry_engine_abort(app->engine, id);
  app->thread.join();
  wherry_engine_destroy(app->engine);
  wherry_model_free(app->model);
  delete app;
}

}  // extern "C"
