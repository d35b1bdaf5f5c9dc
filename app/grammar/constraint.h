// The constraint on an output (a grammar in text form), before it is compiled.
#ifndef WHERRY_APP_GRAMMAR_CONSTRAINT_H_
#define WHERRY_APP_GRAMMAR_CONSTRAINT_H_

#include <string>
#include <vector>

namespace wherry::app {

// A grammar that defines one rule of the main grammar.
struct GrammarPart {
  enum class Kind { kRules, kEbnf, kLark };
  std::string rule;  // name of the rule that the grammar defines
  Kind kind;
  // The grammar's text. Its first rule is `root` (kLark: `start`); for kRules: text in the notation
  // of the main grammar.
  std::string text;
};

// A grammar in xgrammar's notation, which is GBNF with options and macros. Its first rule is
// `root`; its parts define the rules that it uses but does not define.
struct Constraint {
  std::string ebnf;
  std::vector<GrammarPart> parts;
  std::string param;  // name of the request's field that contains the constraint
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_CONSTRAINT_H_
