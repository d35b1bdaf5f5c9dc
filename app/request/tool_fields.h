// Validates the tools of a request.
#ifndef WHERRY_APP_REQUEST_TOOL_FIELDS_H_
#define WHERRY_APP_REQUEST_TOOL_FIELDS_H_

#include <string>

#include "app/request/fields.h"

namespace wherry::app {

void check_tools(Checker& check, const Value& tools);
// Throws RequestError for a tool that is neither a function nor custom.
void refuse_tools(const Value& tools);
void check_tool_choice(Checker& check, const Value& choice);
// Returns a tool_choice in which custom tools are the functions that the model sees.
Value with_functions(const Value& choice);
// Validates the tool calls of an assistant's message.
void check_calls(Checker& check, const std::string& where, const Value& calls);

}  // namespace wherry::app

#endif  // WHERRY_APP_REQUEST_TOOL_FIELDS_H_
