// What a recurrent state costs over many requests: snapshots in the prefix tree.
#include <algorithm>
#include <memory>

#include "sampling/rng.h"
#include "scheduling/engine.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

using Ints = std::vector<int32_t>;

constexpr int64_t kPage = 4;
constexpr int kText = 12;  // tokens of a message, and of an answer

FakeOptions options_of(int64_t context) {
  FakeOptions options;
  options.recurrent = true;
  options.context = context;
  options.page_size = kPage;
  return options;
}

Ints text(uint64_t seed, int length) {
  Ints tokens;
  for (int i = 0; i < length; ++i) {
    tokens.push_back(static_cast<int32_t>(splitmix64(seed, static_cast<uint64_t>(i)) % 64));
  }
  return tokens;
}

Ints joined(Ints first, const Ints& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

wherry_params greedy(int output) {
  wherry_params params;
  wherry_params_init(&params);
  params.temperature = 0;
  params.max_tokens = output;
  return params;
}

// An engine whose answers are compared with those of a model that computes whole texts.
class Chats {
 public:
  explicit Chats(const std::string& config, int64_t context = 512)
      : Chats(config, options_of(context)) {}
  // max_drafts: the engine's default; own: that of each request, or -1.
  Chats(const std::string& config, const FakeOptions& options, int max_drafts = 0, int own = -1)
      : options_(options),
        own_drafts_(own),
        model_(std::make_shared<FakeModel>(options_)),
        engine_(model_, nullptr,
                parse_engine_config(config.c_str(), model_->metadata(), max_drafts)) {}

  // Makes draft tokens worth their while.
  void slow_forward() { model_->forward_time = std::chrono::milliseconds(1); }

  // Answers all prompts at once; returns how many of their tokens the model computed.
  int64_t ask(const std::vector<Ints>& prompts, std::vector<Ints>* answers = nullptr) {
    const uint64_t before = engine_.stats().prefill_tokens;
    for (size_t i = 0; i < prompts.size(); ++i) {
      wherry_params params = greedy(kText);
      params.max_drafts = own_drafts_;
      engine_.add(i + 1, prompts[i].data(), prompts[i].size(), params);
    }
    std::vector<Ints> got(prompts.size());
    for (size_t left = prompts.size(); left > 0;) {
      wherry_event events[16];
      std::string error;
      size_t n = engine_.step(events, 16, &error);
      for (size_t i = 0; i < n; ++i) {
        CHECK(events[i].finish != WHERRY_ERROR);
        got[events[i].id - 1].push_back(events[i].token);
        left -= events[i].finish != WHERRY_RUNNING ? 1 : 0;
      }
    }
    for (size_t i = 0; i < prompts.size(); ++i) {
      CHECK(got[i] == fake_output(options_, prompts[i], greedy(kText), options_.context));
    }
    if (answers) *answers = got;
    return static_cast<int64_t>(engine_.stats().prefill_tokens - before);
  }

  // Asks the next question of a conversation, and adds the answer to it.
  int64_t turn(Ints& chat, uint64_t seed) {
    chat = joined(chat, text(seed, kText));
    std::vector<Ints> answers;
    const int64_t computed = ask({chat}, &answers);
    chat = joined(chat, answers[0]);
    return computed;
  }

  wherry_stats stats() const { return engine_.stats(); }

 private:
  const FakeOptions options_;
  const int own_drafts_;
  std::shared_ptr<FakeModel> model_;
  Engine engine_;
};

constexpr const char* kRoomy =
    R"({"max_batch": 4, "prefill_chunk": 64, "kv_tokens": 2048, "context": 512})";
// A message, the last token of the answer before it, and what follows its last whole page.
constexpr int64_t kTurn = kText + 1 + kPage;

TEST(turn_20_costs_what_turn_2_costs) {
  Chats chats(kRoomy);
  Ints chat;
  chats.turn(chat, 1);
  for (uint64_t turn = 2; turn <= 20; ++turn) CHECK(chats.turn(chat, turn) <= kTurn);
}

TEST(slots_and_snapshots_are_counted) {
  Chats chats(kRoomy);
  const wherry_stats idle = chats.stats();
  CHECK(idle.state_slots > 4);
  CHECK_EQ(idle.state_slots_free, idle.state_slots);
  CHECK_EQ(idle.state_snapshots, 0);
  Ints chat;
  for (uint64_t turn = 1; turn <= 3; ++turn) chats.turn(chat, turn);
  const wherry_stats later = chats.stats();
  CHECK(later.state_snapshots > 0);
  CHECK_EQ(later.state_slots_free, later.state_slots - later.state_snapshots);
}

TEST(a_long_conversation_leaves_snapshots_to_others) {
  Chats chats(kRoomy);
  Ints first = text(100, 8), second = text(200, 8);
  chats.turn(first, 1);
  for (uint64_t turn = 2; turn <= 18; ++turn) chats.turn(second, turn);
  CHECK(chats.turn(first, 19) <= kTurn);
}

TEST(an_edit_at_the_end_costs_the_edit) {
  Chats chats(kRoomy);
  Ints chat = text(7, 60), edited;
  chats.turn(chat, 1);
  edited = chat;
  chats.turn(chat, 2);
  CHECK(chats.turn(edited, 3) <= kTurn);
}

TEST(the_third_request_shares_a_system_prompt) {
  Chats chats(kRoomy);
  const Ints system = text(9, 40);
  CHECK_EQ(chats.ask({joined(system, text(1, kText))}), 52);
  CHECK_EQ(chats.ask({joined(system, text(2, kText))}), 52);  // leaves a snapshot where it parts
  CHECK_EQ(chats.ask({joined(system, text(3, kText))}), kText);
}

TEST(requests_at_once_share_a_system_prompt) {
  Chats chats(kRoomy);
  const Ints system = text(9, 40);
  std::vector<Ints> prompts;
  for (uint64_t i = 0; i < 6; ++i) prompts.push_back(joined(system, text(i, kText)));
  CHECK_EQ(chats.ask(prompts), 40 + 6 * kText);
}

TEST(several_answers_to_one_prompt_compute_it_once) {
  Chats chats(kRoomy);
  const Ints prompt = text(5, 50);
  CHECK(chats.ask({prompt, prompt, prompt}) <= 50 + 2 * kPage);
}

// Conversations that need four times the cache: preemption and eviction change no token. Without
// the bound on prefill chunks, whose measure is time, four requests always run together.
TEST(more_conversations_than_the_cache_holds) {
  Chats chats(R"({"max_batch": 4, "prefill_chunk": 16, "kv_tokens": 160, "context": 128,
                  "max_slowdown": 1e9})",
              128);
  std::vector<Ints> all(16, text(3, 8));
  for (uint64_t turn = 0; turn < 4; ++turn) {
    for (size_t i = 0; i < all.size(); ++i) all[i] = joined(all[i], text(turn * 16 + i, 6));
    std::vector<Ints> answers;
    chats.ask(all, &answers);
    for (size_t i = 0; i < all.size(); ++i) all[i] = joined(all[i], answers[i]);
  }
  CHECK(chats.stats().preemptions > 0);
}

// A model with a block that is always right, and one that always errs: a rejected draft token takes
// the state back, and its tokens are computed again in the next step.
TEST(draft_tokens_of_a_block) {
  for (double agrees : {1.0, 0.0}) {
    FakeOptions options = options_of(512);
    options.block = true;
    options.agrees = agrees;
    Chats chats(R"({"max_batch": 4, "prefill_chunk": 64, "kv_tokens": 2048, "max_drafts": 3})",
                options);
    chats.slow_forward();
    chats.ask({text(1, kText), text(2, kText), text(3, kText)});
    const wherry_stats stats = chats.stats();
    CHECK(stats.drafted_tokens > 0);
    CHECK_EQ(stats.accepted_tokens, agrees == 1 ? stats.drafted_tokens : 0);
    if (agrees == 1) CHECK(stats.steps < static_cast<uint64_t>(3 * kText / 2));
  }
}

// Draft tokens pass over the ends of pages, where a state becomes a snapshot. A turn still costs
// its own tokens, and those of a few pages.
TEST(turns_with_draft_tokens_cost_few_tokens_more) {
  FakeOptions options = options_of(512);
  options.block = true;
  Chats chats(kRoomy, options, 3);
  chats.slow_forward();
  Ints chat;
  chats.turn(chat, 1);
  for (uint64_t turn = 2; turn <= 12; ++turn) CHECK(chats.turn(chat, turn) <= kTurn + 4 * kPage);
  CHECK(chats.stats().accepted_tokens > 20);
}

// The only sequence finds a slot for the state before its draft tokens by eviction.
TEST(draft_tokens_of_a_request_alone_take_a_snapshots_slot) {
  FakeOptions options = options_of(64);
  options.block = true;
  Chats chats(R"({"max_batch": 1, "kv_tokens": 64})", options, 0, 3);
  chats.slow_forward();
  for (uint64_t i = 0; i < 6; ++i) chats.ask({text(i, 20)});
  CHECK(chats.stats().accepted_tokens > 0);
}

}  // namespace
}  // namespace wherry
