// What an output is held to, before it is compiled.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_CONSTRAINT_H_
#define WHERRY_ENGINE_APP_GRAMMAR_CONSTRAINT_H_

#include <string>
#include <vector>

namespace wherry::app {

// A grammar that stands for a rule of another.
struct GrammarPart {
  enum class Kind { kSchema, kEbnf, kLark };
  std::string rule;  // its name there
  Kind kind;
  std::string text;  // JSON of a schema, or a grammar whose first rule is `root` (kLark: `start`)
};

// A grammar in xgrammar's notation, which is GBNF with options and macros. Its first rule is
// `root`; what it says besides refers to parts.
struct Constraint {
  std::string ebnf;
  std::vector<GrammarPart> parts;
  std::string param;  // the request's field that it comes from
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_CONSTRAINT_H_
