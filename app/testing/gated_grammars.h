// A grammar compiler for tests whose compilations wait until the test releases them.
#ifndef WHERRY_APP_TESTING_GATED_GRAMMARS_H_
#define WHERRY_APP_TESTING_GATED_GRAMMARS_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/grammar/grammars.h"
#include "app/text/json_tokenizer.h"
#include "testing/fake_mask.h"
#include "testing/testing.h"

namespace wherry::testing {

constexpr auto kPatience = std::chrono::seconds(60);  // timeout after which a test fails

// A grammar compiler that waits: a grammar that contains "slow" waits until the gate opens, a
// grammar that contains "bad" is rejected. Any thread may use it.
class Gate {
 public:
  ~Gate() { open(); }

  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  // Waits until `count` compilations have begun, and returns their grammars.
  std::vector<std::string> begun(size_t count) {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, kPatience, [&] { return begun_.size() >= count; }));
    return begun_;
  }
  size_t given_up() const {
    const std::lock_guard lock(mutex_);
    return given_up_;
  }

  void pass(const std::string& grammar, const std::atomic<bool>& cancelled) {
    std::unique_lock lock(mutex_);
    begun_.push_back(grammar);
    changed_.notify_all();
    while (grammar.find("slow") != std::string::npos && !open_) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
      if (!cancelled) continue;
      ++given_up_;
      throw Error(WHERRY_INVALID_ARGUMENT, "nobody waits");
    }
    if (grammar.find("bad") != std::string::npos) throw Error(WHERRY_INVALID_ARGUMENT, "it is bad");
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::vector<std::string> begun_;
  size_t given_up_ = 0;
};

constexpr int64_t kGatedTokens = 64;  // vocabulary size of the fake model
constexpr int kGatedLength = 5;       // number of tokens of a fake output

class GatedGrammar : public app::CompiledGrammar {
 public:
  wherry_mask mask(const std::vector<int32_t>&) const override {
    return FakeMask::make(kGatedTokens, 1, kGatedLength);
  }
  size_t bytes() const override { return 1; }
};

class GatedCompiler : public app::GrammarCompiler {
 public:
  explicit GatedCompiler(Gate& gate) : gate_(gate) {}
  app::CompiledGrammarPtr compile(const app::Constraint& constraint,
                                  const std::atomic<bool>& cancelled) override {
    gate_.pass(constraint.ebnf, cancelled);
    return std::make_shared<GatedGrammar>();
  }

 private:
  Gate& gate_;
};

inline app::MakeGrammarCompiler compiler_at(Gate& gate) {
  return [&gate](const Tokenizer&, int64_t) { return std::make_unique<GatedCompiler>(gate); };
}

// Returns a tokenizer with one token per byte.
inline std::unique_ptr<const Tokenizer> byte_tokenizer() {
  std::string vocab;
  for (int i = 0; i < 256; ++i) {
    char entry[16];
    std::snprintf(entry, sizeof entry, "%s\"<0x%02X>\":%d", i == 0 ? "" : ",", i, i);
    vocab += entry;
  }
  return JsonTokenizer::read(
      R"({"model":{"type":"BPE","byte_fallback":true,"merges":[],"vocab":{)" + vocab +
      R"(}},"added_tokens":[],"decoder":{"type":"Sequence","decoders":[
        {"type":"Replace","pattern":{"String":"▁"},"content":" "},
        {"type":"ByteFallback"},{"type":"Fuse"}]}})");
}

}  // namespace wherry::testing

#endif  // WHERRY_APP_TESTING_GATED_GRAMMARS_H_
