// Converts a request's messages into the form that the model's template expects.
#ifndef WHERRY_APP_CHAT_CONVERSATION_H_
#define WHERRY_APP_CHAT_CONVERSATION_H_

#include "app/chat/image_parts.h"
#include "app/request/fields.h"
#include "app/tools/chat_format.h"

namespace wherry::app {

// Returns the messages for the template; the parts of a content are joined to one text without a
// separator, in which marks of `images` stand for images. OpenAI's newer role "developer" becomes
// "system", and "function" becomes "tool". If the template does not support tools, a text describes
// them to the model, and earlier calls and results become text, too. tools: the callable tools, as
// templates print them. images: gets those of the messages. Throws RequestError for content that
// the model does not read.
Values conversation(const Value& messages, const Values& tools, const ChatFormat& chat_format,
                    ImageParts& images);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CONVERSATION_H_
