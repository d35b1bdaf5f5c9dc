// Validates the model's input in a request: messages or prompts.
#ifndef WHERRY_APP_REQUEST_INPUT_FIELDS_H_
#define WHERRY_APP_REQUEST_INPUT_FIELDS_H_

#include <string>

#include "app/request/fields.h"

namespace wherry::app {

void check_messages(Checker& check, const Value& messages);
// Text that the output probably repeats: a content of messages with its type.
void check_prediction(Checker& check, const std::string& name, const Value& prediction);
// name: the field, "prompt" or "input".
void check_prompt(Checker& check, const std::string& name, const Value& prompt);

}  // namespace wherry::app

#endif  // WHERRY_APP_REQUEST_INPUT_FIELDS_H_
