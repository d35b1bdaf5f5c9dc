#include "app/lite/body.h"

#include <algorithm>
#include <initializer_list>
#include <mutex>
#include <string_view>
#include <utility>

#include "app/lite/model.h"
#include "app/request/complete_characters.h"
#include "app/request/fields.h"
#include "app/request/request_error.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

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
  const auto streams = app::Checker().boolean("stream", *stream);
  return streams && streams->integer() != 0;
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

Value without(const Value& request, std::initializer_list<std::string_view> names) {
  Items fields;
  for (const auto& item : request.dict().items) {
    const auto* match = std::find(names.begin(), names.end(), item.first.text());
    if (match == names.end()) fields.push_back(item);
  }
  return json::make_dict(std::move(fields));
}

Value with(const Value& request, std::string_view name, Value value) {
  Items fields = without(request, {name}).dict().items;
  fields.emplace_back(std::string(name), std::move(value));
  return json::make_dict(std::move(fields));
}

// Returns a request with the fields that make the app treat it as its path does: "messages" make a
// chat, "prompt" makes a completion, "task" embeddings, rankings, scores or classes.
Value for_endpoint(Endpoint endpoint, const Value& request) {
  switch (endpoint) {
    case Endpoint::kChat:
      return find(request, "messages") == nullptr
                 ? without(request, {"task", "prompt", "input", "query"})
                 : without(request, {"task"});
    case Endpoint::kCompletion:
      if (find(request, "prompt") != nullptr) return without(request, {"task", "messages"});
      throw refusal(400, "prompt: is missing", "", "prompt");
    case Endpoint::kEmbed:
      return with(request, "task", "embed");
    case Endpoint::kClassify:
      return with(request, "task", "classify");
    case Endpoint::kScore:
      return with(request, "task", "score");
    case Endpoint::kRank:
    case Endpoint::kRankCut:
      break;
  }
  const Value ranking = with(request, "task", "rerank");
  const Value* truncate = find(request, "truncate");
  const bool says_nothing = truncate == nullptr || truncate->is_none();
  return endpoint == Endpoint::kRankCut && says_nothing ? with(ranking, "truncate", true) : ranking;
}

// Returns a body without a byte order mark. Throws Refusal if it is not UTF-8.
std::string_view text_of(std::string_view body) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (body.substr(0, kMark.size()) == kMark) body.remove_prefix(kMark.size());
  if (unicode::well_formed(body) == body) return body;
  throw refusal(400, "The body is not JSON: it has bytes that are not UTF-8", "invalid_json");
}

Value parsed(const std::string& body) {
  // Bodies are parsed one at a time, because a body of 1 MiB can take fifty MiB when parsed.
  static std::mutex parsing;
  const std::lock_guard lock(parsing);
  try {
    Value request = json::from_json(text_of(body), json::Halves::kKept);
    app::require_complete_characters(request);
    return request;
  } catch (const json::Failure& error) {
    throw refusal(400, std::string("The body is not JSON: ") + error.what(), "invalid_json");
  } catch (const app::RequestError& error) {
    throw refusal(400, error.what(), error.code(), error.param());
  }
}

}  // namespace

Refusal unknown_model(const std::string& name, const std::string& served) {
  const std::string shown = name.substr(0, unicode::byte_of(name, kShownName));
  return refusal(404,
                 "The model " + json::repr_text(shown) + " is not served here; " +
                     json::repr_text(served) + " is",
                 "model_not_found", "model");
}

Body read_body(Endpoint endpoint, const std::string& body, const std::string& served) {
  const Value given = parsed(body);
  if (!given.is_dict()) throw refusal(400, "request: takes an object of fields", "");
  const Value request = is_alias(given, served) ? without(given, {"model"}) : given;
  const Value value = for_endpoint(endpoint, request);
  const bool writes = endpoint == Endpoint::kChat || endpoint == Endpoint::kCompletion;
  return {json::to_compact_json(value), writes && is_streamed(request)};
}

bool is_error(const std::string& json) { return json.rfind("{\"error\":", 0) == 0; }

Refusal failure(const std::string& json, bool ending) {
  const Value error = json::from_json(json);
  if (text_at(error, "error/code") == "aborted") {
    if (ending) return refusal(503, "The server is shutting down", "shutting_down");
    return {kClientGone, json};
  }
  return {text_at(error, "error/type") == "server_error" ? 500 : 400, json};
}

}  // namespace wherry::lite
