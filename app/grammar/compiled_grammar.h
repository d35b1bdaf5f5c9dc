// A compiled constraint (grammar), and the interface to obtain one.
#ifndef WHERRY_APP_GRAMMAR_COMPILED_GRAMMAR_H_
#define WHERRY_APP_GRAMMAR_COMPILED_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "app/grammar/constraint.h"
#include "wherry.h"

namespace wherry::app {

// A compiled grammar; thread-safe.
class CompiledGrammar {
 public:
  virtual ~CompiledGrammar() = default;
  // Returns the mask of one request, as wherry_grammar_mask does.
  virtual wherry_mask mask(const std::vector<int32_t>& stop_ids) const = 0;
  virtual size_t bytes() const = 0;
};
using CompiledGrammarPtr = std::shared_ptr<const CompiledGrammar>;

class GrammarSource {
 public:
  // Callback for the grammar or an error: RequestError if the constraint cannot be enforced or
  // exceeds the budget.
  using Done = std::function<void(CompiledGrammarPtr grammar, std::exception_ptr error)>;

  virtual ~GrammarSource() = default;
  // Compiles a constraint and calls `done` once: immediately if the grammar is cached, else after
  // its compilation. Throws RequestError if this model does not support constraints. id: the
  // waiting request.
  virtual void compile(int64_t id, const Constraint& constraint, Done done) = 0;
  // Cancels the wait of request `id`. Returns true if it waited; `done` is then not called.
  virtual bool abandon(int64_t id) = 0;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_COMPILED_GRAMMAR_H_
