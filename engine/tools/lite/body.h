// Between HTTP's bodies and the app's JSON.
#ifndef WHERRY_ENGINE_TOOLS_LITE_BODY_H_
#define WHERRY_ENGINE_TOOLS_LITE_BODY_H_

#include <string>

#include "tools/lite/guard.h"

namespace wherry::lite {

struct Body {
  std::string json;  // of a request that the app takes for what its path says
  bool stream;
};

// body: of /v1/chat/completions (chat) or /v1/completions; served: the model's name. Throws
// Refusal.
Body read_body(bool chat, const std::string& body, const std::string& served);

// The error for a name that no model has.
Refusal unknown_model(const std::string& name, const std::string& served);

// Whether the app's JSON is {"error": ...}.
bool is_error(const std::string& json);
// It as an answer. ending: the server is; then that is why the request was aborted.
Refusal failure(const std::string& json, bool ending);

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_BODY_H_
