// What a request says of tools, checked as runtime_py/request/tool_shapes.py checks it.
#ifndef WHERRY_ENGINE_APP_CHAT_TOOL_FIELDS_H_
#define WHERRY_ENGINE_APP_CHAT_TOOL_FIELDS_H_

#include <string>

#include "app/chat/fields.h"

namespace wherry::app {

void check_tools(Checker& check, const Value& tools);
void check_tool_choice(Checker& check, const Value& choice);
// The calls in an assistant's message.
void check_calls(Checker& check, const std::string& where, const Value& calls);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_TOOL_FIELDS_H_
