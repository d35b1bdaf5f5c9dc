// Converts regular expressions of JSON Schema (ECMA-262) to sets of texts.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_EXPRESSION_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_EXPRESSION_H_

#include <string_view>

#include "app/grammar/schema/texts.h"

namespace wherry::app {

// Returns the set of texts in which the expression has a match. Where regex dialects differ (\s,
// \W, \D), the set contains only texts that match in every dialect. Throws NotEnforced, which names
// the construct that is not supported.
Texts::Id expression(Texts& texts, std::string_view pattern);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_EXPRESSION_H_
