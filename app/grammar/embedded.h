// Embeds a grammar in another grammar.
#ifndef WHERRY_APP_GRAMMAR_EMBEDDED_H_
#define WHERRY_APP_GRAMMAR_EMBEDDED_H_

#include <string>
#include <string_view>
#include <vector>

namespace wherry::app {

// Embeds a grammar: returns it as xgrammar prints it, with its rules renamed so that they do not
// clash: `root` becomes `name`, any other rule gets the prefix `name` and a dot. others: rules that
// the grammar uses but does not define, which are renamed, too.
std::string embedded(std::string_view ebnf, const std::string& name,
                     const std::vector<std::string>& others = {});

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_EMBEDDED_H_
