// What a request gives the model to read, checked as runtime_py/request checks it.
#ifndef WHERRY_ENGINE_APP_CHAT_INPUT_FIELDS_H_
#define WHERRY_ENGINE_APP_CHAT_INPUT_FIELDS_H_

#include "app/chat/fields.h"

namespace wherry::app {

// Null: the request has none.
void check_messages(Checker& check, const Value* messages);
void check_prompt(Checker& check, const Value* prompt);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_INPUT_FIELDS_H_
