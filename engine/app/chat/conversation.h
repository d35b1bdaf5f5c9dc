// A request's messages, as the model's template knows them.
#ifndef WHERRY_ENGINE_APP_CHAT_CONVERSATION_H_
#define WHERRY_ENGINE_APP_CHAT_CONVERSATION_H_

#include <functional>
#include <string>

#include "app/chat/fields.h"
#include "app/template/chat_template.h"

namespace wherry::app {

// Messages for the template; content is one text, parts are joined without a separator. OpenAI's
// newer name "developer" becomes "system", "function" becomes "tool". Throws RequestError: content
// that is not text, calls of tools.
Value conversation(const Value& messages);

// The prompt of a chat. Throws RequestError, or jinja::Abandoned.
std::string rendered(const Fields& fields, const jinja::ChatTemplate* chat_template,
                     const std::function<bool()>& gone);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_CONVERSATION_H_
