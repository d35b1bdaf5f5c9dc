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
      : options_(options_of(context)),
        model_(std::make_shared<FakeModel>(options_)),
        engine_(model_, parse_engine_config(config.c_str(), model_->metadata())) {}

  // Answers all prompts at once; returns how many of their tokens the model computed.
  int64_t ask(const std::vector<Ints>& prompts, std::vector<Ints>* answers = nullptr) {
    const uint64_t before = engine_.stats().prefill_tokens;
    for (size_t i = 0; i < prompts.size(); ++i) {
      engine_.add(i + 1, prompts[i].data(), prompts[i].size(), greedy(kText));
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

TEST(a_draft_model_is_refused) {
  auto model = std::make_shared<FakeModel>(options_of(64));
  auto draft = std::make_shared<FakeModel>();
  const EngineConfig config =
      parse_engine_config(R"({"max_batch": 2, "context": 64})", model->metadata());
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, Engine(model, draft, config)),
                 "leave out the draft model");
}

TEST(a_request_for_draft_tokens_is_refused) {
  auto model = std::make_shared<FakeModel>(options_of(64));
  Engine engine(model, nullptr, parse_engine_config(R"({"context": 64})", model->metadata()));
  const Ints prompt = text(1, 5);
  wherry_params params = greedy(4);
  params.max_drafts = 3;
  CHECK_CONTAINS(
      ERROR_OF(WHERRY_INVALID_ARGUMENT, engine.add(1, prompt.data(), prompt.size(), params)),
      "leave out max_drafts, or give 0");
  params.max_drafts = 0;
  engine.add(1, prompt.data(), prompt.size(), params);
}

}  // namespace
}  // namespace wherry
