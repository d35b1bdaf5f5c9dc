// A request's messages, as the model's template knows them.
#ifndef WHERRY_ENGINE_APP_CHAT_CONVERSATION_H_
#define WHERRY_ENGINE_APP_CHAT_CONVERSATION_H_

#include "app/chat/fields.h"
#include "app/tools/dialect.h"

namespace wherry::app {

// Messages for the template; content is one text, parts are joined without a separator. OpenAI's
// newer name "developer" becomes "system", "function" becomes "tool". Where a template knows
// nothing of tools, a text tells the model of them, and earlier calls and their results are texts
// too. tools: those that may be called, as templates print them. Throws RequestError: content that
// is not text.
Values conversation(const Value& messages, const Values& tools, const Dialect& dialect);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_CONVERSATION_H_
