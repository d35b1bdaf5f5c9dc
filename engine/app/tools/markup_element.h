// What may stand in an element of markup, as an expression of a grammar.
#ifndef WHERRY_ENGINE_APP_TOOLS_MARKUP_ELEMENT_H_
#define WHERRY_ENGINE_APP_TOOLS_MARKUP_ELEMENT_H_

#include <string>
#include <utility>

#include "app/grammar/rules.h"
#include "app/template/value.h"

namespace wherry::app {

// An argument's value, and `end` behind it: whether it is a text as it stands, and the expression.
// root: the schema of all arguments, which may hold definitions.
std::pair<bool, std::string> markup_element(Rules& rules, const jinja::Value& schema,
                                            const jinja::Value& root, const std::string& end);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_MARKUP_ELEMENT_H_
