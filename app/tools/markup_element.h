// The grammar of an element's value in the markup format.
#ifndef WHERRY_APP_TOOLS_MARKUP_ELEMENT_H_
#define WHERRY_APP_TOOLS_MARKUP_ELEMENT_H_

#include <string>
#include <utility>

#include "app/grammar/rules.h"
#include "app/template/value.h"

namespace wherry::app {

// Returns whether an argument's value is plain text, and the expression of the value followed by
// `end`. root: the schema of all arguments, which may contain definitions.
std::pair<bool, std::string> markup_element(Rules& rules, const jinja::Value& schema,
                                            const jinja::Value& root, const std::string& end);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_MARKUP_ELEMENT_H_
