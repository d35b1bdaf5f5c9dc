// Stands in for the grammar compiler in builds without xgrammar (cmake/xgrammar.cmake).
#include "app/grammar/compiler.h"

namespace wherry::app {

std::unique_ptr<GrammarCompiler> make_grammar_compiler(const std::vector<std::string>&) {
  return nullptr;
}

}  // namespace wherry::app
