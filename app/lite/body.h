// Converts HTTP bodies to and from the app's JSON.
#ifndef WHERRY_APP_LITE_BODY_H_
#define WHERRY_APP_LITE_BODY_H_

#include <string>

#include "app/lite/guard.h"

namespace wherry::lite {

// What a path answers. kRankCut: /v1/rerank, which cuts texts that are too long unless the request
// says otherwise; at /rerank (kRank) they are errors.
enum class Endpoint { kChat, kCompletion, kEmbed, kClassify, kScore, kRank, kRankCut };

struct Body {
  std::string json;  // JSON of the request in the form that matches its path
  bool stream;
};

// Reads the body of a request. served: the model's name. Throws Refusal.
Body read_body(Endpoint endpoint, const std::string& body, const std::string& served);

// Returns the error for an unknown model name.
Refusal unknown_model(const std::string& name, const std::string& served);

// Whether the app's JSON is an error, {"error": ...}.
bool is_error(const std::string& json);
// Converts error JSON to an HTTP error. ending: whether the server is shutting down and therefore
// aborted the request.
Refusal failure(const std::string& json, bool ending);

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_BODY_H_
