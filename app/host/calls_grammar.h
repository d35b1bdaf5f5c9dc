// Writes the grammar of a chat's output for a host that compiles llguidance's dialect of Lark.
#ifndef WHERRY_APP_HOST_CALLS_GRAMMAR_H_
#define WHERRY_APP_HOST_CALLS_GRAMMAR_H_

#include <string>

#include "app/value/value.h"

namespace wherry::app {

// Returns the JSON that host_abi.h describes at wherry_calls_grammar.
std::string calls_grammar(const json::Value& chat);

}  // namespace wherry::app

#endif  // WHERRY_APP_HOST_CALLS_GRAMMAR_H_
