// Regular expressions of JSON Schema (ECMA-262) as sets of texts.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_EXPRESSION_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_EXPRESSION_H_

#include <string_view>

#include "app/grammar/schema/texts.h"

namespace wherry::app {

// Returns the texts in which an expression has a match. Where regex dialects differ (\s, \W, \D),
// the set contains only texts that match in every dialect. Throws NotEnforced, naming the construct
// that it does not support.
Texts::Id expression(Texts& texts, std::string_view pattern);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_EXPRESSION_H_
