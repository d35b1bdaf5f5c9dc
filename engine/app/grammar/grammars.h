// What a model's outputs are held to: compiled, and kept.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_GRAMMARS_H_
#define WHERRY_ENGINE_APP_GRAMMAR_GRAMMARS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/grammar/constraint.h"
#include "app/text/tokenizer.h"
#include "wherry.h"

namespace wherry::app {

// A compiled grammar. Any thread.
class HeldTo {
 public:
  virtual ~HeldTo() = default;
  // The mask of one request, as wherry_grammar_mask gives it.
  virtual wherry_mask mask(const std::vector<int32_t>& stop_ids) const = 0;
  virtual size_t bytes() const = 0;
};
using HeldToPtr = std::shared_ptr<const HeldTo>;

// What compiles the grammars of one model.
class GrammarCompiler {
 public:
  virtual ~GrammarCompiler() = default;
  // Throws Error: what is wrong with it, or that it takes too much.
  virtual HeldToPtr compile(const Constraint& constraint) = 0;
};
// Null where this program was built without xgrammar. vocab_size: columns of the logits.
std::unique_ptr<GrammarCompiler> make_grammar_compiler(const Tokenizer& tokenizer,
                                                       int64_t vocab_size);

class Grammars {
 public:
  Grammars(const Tokenizer& tokenizer, int64_t vocab_size)
      : tokenizer_(tokenizer), vocab_size_(vocab_size) {}

  // Compiles, at most once each. Throws RequestError: it cannot be enforced, or takes too much.
  HeldToPtr compile(const Constraint& constraint);
  // Frees what no request uses, unless a grammar is being compiled.
  void forget();

 private:
  struct Kept {
    std::string key;
    HeldToPtr grammar;   // null: it cannot be compiled,
    std::string reason;  // because of this
  };
  Kept& found(const Constraint& constraint);
  Kept made(const Constraint& constraint, std::string key);

  const Tokenizer& tokenizer_;
  const int64_t vocab_size_;
  std::mutex mutex_;
  std::unique_ptr<GrammarCompiler> compiler_;  // most models are never asked for one
  std::list<Kept> kept_;                       // the latest first
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_GRAMMARS_H_
