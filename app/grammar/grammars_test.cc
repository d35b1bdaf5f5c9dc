// Tests the compiling thread and the requests that wait for it.
#include "app/grammar/grammars.h"

#include "app/request/request_error.h"
#include "app/testing/gated_grammars.h"

namespace {

using namespace wherry;
using namespace wherry::app;
using namespace wherry::testing;

// Collects the results that waiting requests get.
class Listener {
 public:
  Grammars::Done done(int64_t id) {
    return [this, id](const CompiledGrammarPtr& grammar, const std::exception_ptr& error) {
      std::string text = "compiled";
      try {
        if (error) std::rethrow_exception(error);
        CHECK(grammar != nullptr);
      } catch (const RequestError& refusal) {
        text = refusal.what();
      }
      const std::lock_guard lock(mutex_);
      all_.emplace_back(id, text);
      changed_.notify_all();
    };
  }

  std::vector<std::pair<int64_t, std::string>> all(size_t count) {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, kPatience, [&] { return all_.size() >= count; }));
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<int64_t, std::string>> all_;
};

using All = std::vector<std::pair<int64_t, std::string>>;

struct Bench {
  Gate gate;
  Listener listener;
  std::unique_ptr<const Tokenizer> tokenizer = byte_tokenizer();
  Grammars grammars{*tokenizer, kGatedTokens, compiler_at(gate)};

  void ask(int64_t id, const std::string& grammar, const std::string& param = "grammar") {
    grammars.compile(id, {grammar, {}, param}, listener.done(id));
  }
};

TEST(equal_ones_are_compiled_once_and_in_order) {
  Bench bench;
  bench.ask(1, "slow");
  bench.ask(2, "b");
  bench.ask(3, "slow");
  bench.ask(4, "c");
  bench.ask(5, "b");
  CHECK(bench.gate.begun(1) == std::vector<std::string>{"slow"});
  bench.gate.open();
  CHECK(bench.listener.all(5) ==
        (All{{1, "compiled"}, {3, "compiled"}, {2, "compiled"}, {5, "compiled"}, {4, "compiled"}}));
  CHECK(bench.gate.begun(3) == (std::vector<std::string>{"slow", "b", "c"}));
  bench.ask(6, "b");
  CHECK(bench.listener.all(6).back() == std::pair(int64_t{6}, std::string("compiled")));
  CHECK_EQ(bench.gate.begun(3).size(), 3u);
}

TEST(what_is_known_goes_by_what_is_compiled) {
  Bench bench;
  bench.grammars.compiled({"known", {}, ""});
  bench.ask(1, "slow");
  bench.gate.begun(2);
  bench.ask(2, "known");
  CHECK(bench.listener.all(1) == (All{{2, "compiled"}}));
  bench.grammars.forget();  // the running compilation remains
  bench.gate.open();
  CHECK_EQ(bench.listener.all(2).size(), 2u);
}

TEST(an_abandoned_request_is_not_called) {
  Bench bench;
  bench.ask(1, "slow 1");
  bench.ask(2, "slow 1");
  bench.ask(3, "never");
  bench.gate.begun(1);
  CHECK(bench.grammars.abandon(3));
  CHECK(bench.grammars.abandon(1));
  CHECK(!bench.grammars.abandon(1));
  // Request 2 still waits, so the compilation is not cancelled.
  CHECK_EQ(bench.gate.given_up(), 0u);
  CHECK(bench.grammars.abandon(2));
  bench.ask(4, "slow 1");  // must not join the cancelled compilation, nor get its error
  CHECK(bench.gate.begun(2) == (std::vector<std::string>{"slow 1", "slow 1"}));
  CHECK_EQ(bench.gate.given_up(), 1u);
  bench.gate.open();
  CHECK(bench.listener.all(1) == (All{{4, "compiled"}}));
  CHECK(!bench.grammars.abandon(4));
}

TEST(each_request_gets_an_error_in_its_own_words) {
  Bench bench;
  bench.ask(1, "slow and bad", "guided_regex");
  bench.ask(2, "slow and bad", "grammar");
  bench.gate.open();
  CHECK(bench.listener.all(2) == (All{{1, "guided_regex cannot be enforced: it is bad"},
                                      {2, "grammar cannot be enforced: it is bad"}}));
  bench.ask(3, "slow and bad");
  CHECK_EQ(bench.listener.all(3).size(), 3u);
  CHECK_EQ(bench.gate.begun(1).size(), 1u);
}

TEST(a_program_without_xgrammar_says_so) {
  const auto tokenizer = byte_tokenizer();
  Grammars grammars(*tokenizer, kGatedTokens, [](const Tokenizer&, int64_t) { return nullptr; });
  try {
    grammars.compiled({"a", {}, "guided_regex"});
    CHECK(false);
  } catch (const RequestError& error) {
    CHECK_EQ(error.code(), "unsupported_parameter");
    CHECK_CONTAINS(error.what(), "guided_regex needs a grammar");
  }
}

TEST(closing_ends_what_is_compiled) {
  Bench bench;
  for (int64_t id = 1; id < 5; ++id) bench.ask(id, "slow " + std::to_string(id / 2));
  bench.gate.begun(1);
  bench.grammars.close();
  CHECK_EQ(bench.gate.given_up(), 1u);
  CHECK_EQ(bench.gate.begun(1).size(), 1u);
  CHECK(bench.listener.all(0).empty());
}

}  // namespace
