// The constraint of an output, before it is compiled.
#ifndef WHERRY_APP_GRAMMAR_CONSTRAINT_H_
#define WHERRY_APP_GRAMMAR_CONSTRAINT_H_

#include <string>
#include <vector>

namespace wherry::app {

// A grammar that defines one rule of the main grammar.
struct GrammarPart {
  enum class Kind { kRules, kEbnf, kLark };
  std::string rule;  // the name of that rule
  Kind kind;
  std::string text;  // its first rule is `root` (kLark: `start`); kRules: text in the notation of
                     // the main grammar
};

// A grammar in xgrammar's notation, which is GBNF with options and macros. Its first rule is
// `root`; rules that it does not define are those of its parts.
struct Constraint {
  std::string ebnf;
  std::vector<GrammarPart> parts;
  std::string param;  // the request's field that contains it
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_CONSTRAINT_H_
