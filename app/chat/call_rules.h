// Makes the rules of a request's tools in xgrammar's notation.
#ifndef WHERRY_APP_CHAT_CALL_RULES_H_
#define WHERRY_APP_CHAT_CALL_RULES_H_

#include "app/chat/requested_tools.h"
#include "app/grammar/ebnf_rules.h"

namespace wherry::app {

// Returns a schema of arguments as that of an object; a tool without parameters takes none.
Value arguments_schema(const Value& parameters);

// Returns the rules of the tools in a format. Throws RequestError if a strict tool's parameters
// cannot be enforced; other tools then take any arguments.
CallRules call_rules(const RequestedTools& tools, const Format& format, EbnfRules& rules);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CALL_RULES_H_
