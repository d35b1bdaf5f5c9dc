// Converts a request's messages into the form that the model's template expects.
#ifndef WHERRY_APP_CHAT_CONVERSATION_H_
#define WHERRY_APP_CHAT_CONVERSATION_H_

#include "app/request/fields.h"
#include "app/tools/chat_format.h"

namespace wherry::app {

// Returns the messages for the template; the parts of a content are joined to one text without a
// separator. OpenAI's newer role "developer" becomes "system", and "function" becomes "tool". If
// the template does not support tools, a text describes them to the model, and earlier calls and
// results become text, too. tools: the callable tools, as templates print them. Throws RequestError
// for content that is not text.
Values conversation(const Value& messages, const Values& tools, const ChatFormat& chat_format);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CONVERSATION_H_
