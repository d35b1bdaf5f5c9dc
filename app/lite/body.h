// Converts HTTP bodies to and from the app's JSON.
#ifndef WHERRY_APP_LITE_BODY_H_
#define WHERRY_APP_LITE_BODY_H_

#include <string>

#include "app/lite/guard.h"

namespace wherry::lite {

struct Body {
  std::string json;  // JSON of the request in the form that matches its path
  bool stream;
};

// Reads the body of a request. body: as sent to /v1/chat/completions (chat) or /v1/completions;
// served: the model's name. Throws Refusal.
Body read_body(bool chat, const std::string& body, const std::string& served);

// Returns the error for an unknown model name.
Refusal unknown_model(const std::string& name, const std::string& served);

// Whether the app's JSON is an error, {"error": ...}.
bool is_error(const std::string& json);
// Converts error JSON to an HTTP error. ending: whether the server is shutting down and therefore
// aborted the request.
Refusal failure(const std::string& json, bool ending);

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_BODY_H_
