// Grammar of an argument's value in the format Markup.
#ifndef WHERRY_APP_TOOLS_MARKUP_ELEMENT_H_
#define WHERRY_APP_TOOLS_MARKUP_ELEMENT_H_

#include <string>
#include <utility>

#include "app/grammar/rules.h"
#include "app/value/value.h"

namespace wherry::app {

// Returns whether an argument's value is plain text rather than JSON, and the grammar expression of
// the value followed by `end`. schema: the argument's JSON Schema. root: the schema of all
// arguments, which may contain definitions that `schema` refers to.
std::pair<bool, std::string> markup_element(Rules& rules, const json::Value& schema,
                                            const json::Value& root, const std::string& end);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_MARKUP_ELEMENT_H_
