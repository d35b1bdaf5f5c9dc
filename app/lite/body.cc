#include "app/lite/body.h"

#include <mutex>

#include "app/lite/model.h"
#include "app/request/fields.h"
#include "app/request/request_error.h"
#include "app/request/whole_characters.h"
#include "app/template/code_points.h"
#include "app/template/json_text.h"

namespace wherry::lite {

namespace {

// Upper bound on a model name's characters; the app rejects longer names.
constexpr size_t kLongestName = 1024;
constexpr size_t kShownName = 100;
constexpr char kLatest[] = ":latest";  // tag that Ollama's clients append to names without a tag
// Nginx's code for a client that disconnected; it is logged and never sent.
constexpr int kClientGone = 499;

bool is_streamed(const Value& request) {
  const Value* stream = find(request, "stream");
  if (stream == nullptr || stream->is_none()) return false;
  const auto asked = app::Checker().boolean("stream", *stream);
  return asked && asked->integer() != 0;
}

// Whether the request's model name is an alias of the model's name and has to be removed. Throws
// Refusal for an unknown model.
bool is_alias(const Value& request, const std::string& served) {
  const Value* model = find(request, "model");
  if (model == nullptr || !model->is_string() || model->chars() > kLongestName) return false;
  if (model->text() == served) return false;
  if (model->text().empty() || model->text() == served + kLatest) return true;
  throw unknown_model(model->text(), served);
}

Value without(const Value& request, const std::string& name) {
  Items made;
  for (const auto& item : request.dict().items) {
    if (item.first.text() != name) made.push_back(item);
  }
  return jinja::make_dict(std::move(made));
}

// Returns a body without a byte order mark. Throws Refusal if it is not UTF-8.
std::string_view text_of(std::string_view body) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (body.substr(0, kMark.size()) == kMark) body.remove_prefix(kMark.size());
  if (jinja::well_formed(body) == body) return body;
  throw refusal(400, "The body is not JSON: it has bytes that are not UTF-8", "invalid_json");
}

Value parsed(const std::string& body) {
  // Bodies are parsed one at a time, because a body of 1 MiB can take fifty MiB when parsed.
  static std::mutex parsing;
  const std::lock_guard lock(parsing);
  try {
    Value request = jinja::from_json(text_of(body), jinja::Halves::kKept);
    app::require_whole_characters(request);
    return request;
  } catch (const jinja::Failure& error) {
    throw refusal(400, std::string("The body is not JSON: ") + error.what(), "invalid_json");
  } catch (const app::RequestError& error) {
    throw refusal(400, error.what(), error.code(), error.param());
  }
}

}  // namespace

Refusal unknown_model(const std::string& name, const std::string& served) {
  const std::string shown = name.substr(0, jinja::byte_of(name, kShownName));
  return refusal(404,
                 "The model " + jinja::repr_text(shown) + " is not served here; " +
                     jinja::repr_text(served) + " is",
                 "model_not_found", "model");
}

Body read_body(bool chat, const std::string& body, const std::string& served) {
  const Value given = parsed(body);
  if (!given.is_dict()) throw refusal(400, "request: takes an object of fields", "");
  Value request = given;
  if (is_alias(request, served)) request = without(request, "model");
  // Removes the field of the other kind, because the app treats a request with messages as a chat,
  // and one with only a prompt as a completion.
  if (chat && find(request, "messages") == nullptr) request = without(request, "prompt");
  if (!chat) {
    request = without(request, "messages");
    if (find(request, "prompt") == nullptr) {
      throw refusal(400, "prompt: is missing", "", "prompt");
    }
  }
  return {jinja::to_compact_json(request), is_streamed(request)};
}

bool is_error(const std::string& json) { return json.rfind("{\"error\":", 0) == 0; }

Refusal failure(const std::string& json, bool ending) {
  const Value error = jinja::from_json(json);
  if (text_at(error, "error/code") == "aborted") {
    if (ending) return refusal(503, "The server is shutting down", "shutting_down");
    return {kClientGone, json};
  }
  return {text_at(error, "error/type") == "server_error" ? 500 : 400, json};
}

}  // namespace wherry::lite
