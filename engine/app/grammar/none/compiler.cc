// Where xgrammar was not there when this was built (cmake/xgrammar.cmake).
#include "app/grammar/grammars.h"

namespace wherry::app {

std::unique_ptr<GrammarCompiler> make_grammar_compiler(const Tokenizer&, int64_t) {
  return nullptr;
}

}  // namespace wherry::app
