// Compares the prefix cache's hit rate on traces of conversations with an independent simulation
// that knows the whole texts.
#include <algorithm>
#include <list>

#include "sampling/rng.h"
#include "scheduling/engine.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

using Ints = std::vector<int32_t>;

constexpr int64_t kPage = 4;

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  int below(int n) {
    return static_cast<int>(splitmix64(seed_, next_++) % static_cast<uint64_t>(n));
  }
  Ints text(int length) {
    Ints tokens;
    for (int i = 0; i < length; ++i) tokens.push_back(below(64));
    return tokens;
  }

 private:
  uint64_t seed_, next_ = 0;
};

void append(Ints& text, const Ints& more) { text.insert(text.end(), more.begin(), more.end()); }

// Simulates an ideal prefix cache: it stores texts and evicts the least recently used ones beyond
// its capacity in tokens.
class Oracle {
 public:
  explicit Oracle(int64_t tokens) : capacity_(tokens) {}

  // Returns the length in tokens of the prompt's longest cached prefix.
  int64_t cached_tokens(const Ints& prompt) {
    int64_t best = 0;
    // The last prompt token is always computed.
    auto most = static_cast<int64_t>(prompt.size()) - 1;
    for (const Ints& text : texts_) {
      int64_t n = std::min(most, static_cast<int64_t>(text.size()));
      auto differ = std::mismatch(text.begin(), text.begin() + n, prompt.begin());
      best = std::max<int64_t>(best, differ.first - text.begin());
    }
    return best;
  }

  void remember(const Ints& text) {
    texts_.remove_if([&](const Ints& old) {
      return old.size() <= text.size() && std::equal(old.begin(), old.end(), text.begin());
    });
    texts_.push_front(text);
    while (stored_tokens() > capacity_) texts_.pop_back();
  }

 private:
  // Returns the stored tokens in whole pages; pages of a shared prefix count once.
  int64_t stored_tokens() const {
    std::vector<const Ints*> sorted;
    for (const Ints& text : texts_) sorted.push_back(&text);
    std::sort(sorted.begin(), sorted.end(), [](auto a, auto b) { return *a < *b; });
    int64_t pages = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
      int64_t shared = 0;
      if (i > 0) {
        auto n = static_cast<int64_t>(std::min(sorted[i]->size(), sorted[i - 1]->size()));
        auto differ =
            std::mismatch(sorted[i]->begin(), sorted[i]->begin() + n, sorted[i - 1]->begin());
        shared = (differ.first - sorted[i]->begin()) / kPage;
      }
      pages += pages_for(static_cast<int64_t>(sorted[i]->size()), kPage) - shared;
    }
    return pages * kPage;
  }

  int64_t capacity_;
  std::list<Ints> texts_;  // stored texts, the most recently used first
};

// Runs one prompt after the other and compares the engine's cache hits with the oracle's.
class Trace {
 public:
  explicit Trace(int64_t kv_tokens)
      : oracle_(kv_tokens),
        model_(std::make_shared<FakeModel>(options())),
        engine_(model_, parse_engine_config(
                            concat(R"({"max_batch": 1, "kv_tokens": )", kv_tokens, "}").c_str(),
                            model_->metadata())) {}

  // Runs a prompt and returns its output tokens.
  Ints ask(const Ints& prompt, int output = 12) {
    wherry_params params;
    wherry_params_init(&params);
    params.temperature = 0;
    params.max_tokens = output;
    engine_.add(1, prompt.data(), prompt.size(), params);
    Ints tokens;
    for (bool done = false; !done;) {
      wherry_event events[16];
      std::string error;
      size_t n = engine_.step(events, 16, &error);
      for (size_t i = 0; i < n; ++i) {
        tokens.push_back(events[i].token);
        done = events[i].finish != WHERRY_RUNNING;
      }
    }
    prompt_tokens_ += static_cast<double>(prompt.size());
    possible_ += static_cast<double>(oracle_.cached_tokens(prompt));
    Ints text = prompt;
    append(text, tokens);
    text.pop_back();  // the last token is never computed, so it is not cached
    oracle_.remember(text);
    return tokens;
  }

  void check(double least) const {
    double rate = static_cast<double>(engine_.stats().cached_tokens) / prompt_tokens_;
    double oracle = possible_ / prompt_tokens_;
    CHECK(oracle > least);
    if (rate < oracle - 0.02) {
      testing::fail(__FILE__, __LINE__, concat("hit rate ", rate, ", the oracle's is ", oracle));
    }
  }

 private:
  static FakeOptions options() {
    FakeOptions options;
    options.context = 512;
    options.page_size = kPage;
    return options;
  }

  Oracle oracle_;
  std::shared_ptr<FakeModel> model_;
  Engine engine_;
  double prompt_tokens_ = 0, possible_ = 0;
};

// Replays conversations that take turns and share one system prompt.
void multi_turn(int64_t kv_tokens, double least) {
  Trace trace(kv_tokens);
  Dice dice(1);
  const Ints system = dice.text(37);
  std::vector<Ints> chats(6, system);
  for (int turn = 0; turn < 60; ++turn) {
    Ints& chat = chats[static_cast<size_t>(dice.below(6))];
    if (chat.size() > 300) chat = system;
    append(chat, dice.text(5 + dice.below(20)));
    append(chat, trace.ask(chat));
  }
  trace.check(least);
}

TEST(multi_turn_chats) { multi_turn(4096, 0.7); }
TEST(multi_turn_chats_in_little_memory) { multi_turn(900, 0.3); }

TEST(few_shot_prompts) {
  Trace trace(2048);
  Dice dice(2);
  std::vector<Ints> examples;
  for (int i = 0; i < 4; ++i) examples.push_back(dice.text(80 + i));
  for (int i = 0; i < 80; ++i) {
    Ints prompt = examples[static_cast<size_t>(dice.below(4))];
    append(prompt, dice.text(6 + dice.below(12)));
    trace.ask(prompt, 4);
  }
  trace.check(0.7);
}

TEST(an_agent_that_calls_tools) {
  Trace trace(1200);
  Dice dice(3);
  Ints history = dice.text(61);
  for (int step = 0; step < 60; ++step) {
    // Starts a new conversation after the shared 61 tokens.
    if (history.size() > 400) history.resize(61);
    append(history, trace.ask(history, 6 + dice.below(8)));
    append(history, dice.text(10 + dice.below(25)));  // appends the result of a tool call
    // Simulates a last message that was cut.
    if (dice.below(5) == 0) history.resize(history.size() - 7);
  }
  trace.check(0.7);
}

}  // namespace
}  // namespace wherry
