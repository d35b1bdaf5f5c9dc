// What a model's outputs are held to: compiled, and kept.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_GRAMMARS_H_
#define WHERRY_ENGINE_APP_GRAMMAR_GRAMMARS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/chat/thread.h"
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
  // Throws Error: what is wrong with it, that it takes too much, or, soon after `unwanted` became
  // true, anything.
  virtual HeldToPtr compile(const Constraint& constraint, const std::atomic<bool>& unwanted) = 0;
};
// Null where this program was built without xgrammar. vocab_size: columns of the logits.
std::unique_ptr<GrammarCompiler> make_grammar_compiler(const Tokenizer& tokenizer,
                                                       int64_t vocab_size);
using MakeGrammarCompiler =
    std::function<std::unique_ptr<GrammarCompiler>(const Tokenizer&, int64_t vocab_size)>;

// A heavy one takes seconds, so they are compiled on a thread of their own, one after the other, in
// the order in which they came; equal ones once. Any thread may call, and none waits for that one.
class Grammars {
 public:
  // Takes the grammar, or why there is none: RequestError where it cannot be enforced, or takes too
  // much.
  using Done = std::function<void(HeldToPtr grammar, std::exception_ptr error)>;

  // make: called by the first grammar that is compiled; most models are never asked for one.
  Grammars(const Tokenizer& tokenizer, int64_t vocab_size,
           MakeGrammarCompiler make = make_grammar_compiler)
      : tokenizer_(tokenizer), vocab_size_(vocab_size), make_(std::move(make)) {}
  ~Grammars() { close(); }
  Grammars(const Grammars&) = delete;
  Grammars& operator=(const Grammars&) = delete;

  // Calls `done` once: at once where the grammar is known, else on the thread that has compiled it.
  // Throws RequestError: this model's outputs cannot be held to anything. id: of who waits.
  void compile(int64_t id, const Constraint& constraint, Done done);
  // Waits for it. Throws what `done` would be told.
  HeldToPtr compiled(const Constraint& constraint);
  // True if `id` waited: it will not be told. What nobody waits for any more is not compiled
  // further.
  bool abandon(int64_t id);
  // Frees what no request uses, but for what is being compiled.
  void forget();
  // Nobody who waits will be told. Returns when the thread has ended, soon; no later call may come.
  void close();

 private:
  struct Kept {
    std::string key;
    HeldToPtr grammar;     // null: it cannot be compiled,
    std::string reason;    // because of this
    bool without = false;  // or because there is nothing that could
  };
  struct Waiter {
    int64_t id;
    std::string param;
    Done done;
  };
  struct Job {
    std::string key;
    Constraint constraint;
    std::vector<Waiter> waiters;
    std::atomic<bool> unwanted{false};
  };

  const Kept* found(const std::string& key);
  Job& job_of(std::string key, const Constraint& constraint);
  void work();
  Kept made(const Job& job);
  void keep(Kept made);
  static void tell(const Waiter& waiter, const Kept& made);

  const Tokenizer& tokenizer_;
  const int64_t vocab_size_;
  const MakeGrammarCompiler make_;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;      // the first is being compiled
  std::unique_ptr<GrammarCompiler> compiler_;  // the thread's, while there are jobs
  std::list<Kept> kept_;                       // the latest first
  bool closing_ = false;
  std::unique_ptr<Thread> thread_;  // since the first job
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_GRAMMARS_H_
