// Compiles the grammars of a model and caches them.
#ifndef WHERRY_APP_GRAMMAR_GRAMMARS_H_
#define WHERRY_APP_GRAMMAR_GRAMMARS_H_

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

#include "app/grammar/compiler.h"
#include "app/support/thread.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

using MakeGrammarCompiler =
    std::function<std::unique_ptr<GrammarCompiler>(const Tokenizer&, int64_t vocab_size)>;
// Creates the grammar compiler of a tokenizer. vocab_size: number of columns of the logits.
std::unique_ptr<GrammarCompiler> compiler_of(const Tokenizer& tokenizer, int64_t vocab_size);

// Compiles grammars and caches them. A large grammar takes seconds, so one separate thread compiles
// them in order of arrival, equal ones once. Any thread may call, and only `compiled` waits for a
// compilation.
class Grammars : public GrammarSource {
 public:
  // make: creates the compiler; called before the first compilation, because most models never need
  // one.
  Grammars(const Tokenizer& tokenizer, int64_t vocab_size, MakeGrammarCompiler make = compiler_of)
      : tokenizer_(tokenizer), vocab_size_(vocab_size), make_(std::move(make)) {}
  ~Grammars() override { close(); }
  Grammars(const Grammars&) = delete;
  Grammars& operator=(const Grammars&) = delete;

  // Calls `done` on the compiling thread, or immediately if the grammar is cached.
  void compile(int64_t id, const Constraint& constraint, Done done) override;
  // Waits for the compilation and returns its grammar. Throws the error that `done` would get.
  CompiledGrammarPtr compiled(const Constraint& constraint);
  bool abandon(int64_t id) override;  // also cancels a compilation for which no other request waits
  // Clears the cache; grammars in use and the running compilation remain.
  void forget();
  // Drops all waiting requests without calling `done`. Returns when the thread has ended, which is
  // soon; no call may follow.
  void close();

 private:
  struct Kept {
    std::string key;
    CompiledGrammarPtr grammar;  // null if the grammar failed to compile
    std::string reason;          // error message if the compilation failed
    bool without = false;        // true if it failed because this build has no compiler
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
    std::atomic<bool> cancelled{false};
  };

  const Kept* kept_or_null(const std::string& key);
  Job& job_of(std::string key, const Constraint& constraint);
  void work();
  Kept build(const Job& job);
  void keep(Kept kept);
  static void tell(const Waiter& waiter, const Kept& result);

  const Tokenizer& tokenizer_;
  const int64_t vocab_size_;
  const MakeGrammarCompiler make_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;      // queued jobs, of which the first is being compiled
  std::unique_ptr<GrammarCompiler> compiler_;  // only the thread uses it while there are jobs
  std::list<Kept> kept_;                       // cached results, the most recently used first
  bool closing_ = false;
  std::unique_ptr<Thread> thread_;  // the compiling thread; started for the first job
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_GRAMMARS_H_
