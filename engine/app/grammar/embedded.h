// Grammars inside others.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_EMBEDDED_H_
#define WHERRY_ENGINE_APP_GRAMMAR_EMBEDDED_H_

#include <string>
#include <string_view>
#include <vector>

namespace wherry::app {

// A grammar as xgrammar prints it, its rules renamed so that they are another's besides: `root`
// becomes `name`, any other rule `name` and a dot before its own. others: rules that it refers to
// and does not define, which are renamed likewise.
std::string embedded(std::string_view ebnf, const std::string& name,
                     const std::vector<std::string>& others = {});

// The grammar of a schema as xgrammar prints it, in which a name that may be added has no escape up
// to where it differs from the names of properties: xgrammar keeps these out as they are written,
// so that "\u0061" would be another name than "a".
std::string without_escaped_names(std::string ebnf);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_EMBEDDED_H_
