// The interface of a model's grammar compiler.
#ifndef WHERRY_APP_GRAMMAR_COMPILER_H_
#define WHERRY_APP_GRAMMAR_COMPILER_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "app/grammar/compiled_grammar.h"

namespace wherry::app {

class GrammarCompiler {
 public:
  virtual ~GrammarCompiler() = default;
  // Compiles a constraint. Throws Error if the grammar is invalid or exceeds the budget; after
  // `unwanted` becomes true, it soon throws any Error.
  virtual CompiledGrammarPtr compile(const Constraint& constraint,
                                     const std::atomic<bool>& cancelled) = 0;
};
// Creates the compiler; returns null in builds without xgrammar. vocabulary: the result of
// grammar_vocabulary.
std::unique_ptr<GrammarCompiler> make_grammar_compiler(const std::vector<std::string>& vocabulary);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_COMPILER_H_
