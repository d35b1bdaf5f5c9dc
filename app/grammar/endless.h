// Finds grammars of which no text is complete, such as `root ::= "a" root`.
#ifndef WHERRY_APP_GRAMMAR_ENDLESS_H_
#define WHERRY_APP_GRAMMAR_ENDLESS_H_

#include <string>
#include <string_view>

namespace wherry::app {

// Returns the name of the first rule of a grammar if each of its texts needs it again, else "". The
// grammar is in GBNF (`::=`) or in llguidance's dialect of Lark (`:`). What is not understood
// counts as a text that ends.
std::string endless_rule(std::string_view grammar);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_ENDLESS_H_
