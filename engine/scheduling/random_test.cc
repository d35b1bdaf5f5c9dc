// Runs random requests on a tiny KV cache with all features on. Each request must give the same
// tokens as when it runs alone, and no page may leak.
#include <chrono>
#include <map>
#include <thread>

#include "sampling/rng.h"
#include "scheduling/engine.h"
#include "testing/fake_images.h"
#include "testing/fake_mask.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  int below(int n) {
    return static_cast<int>(splitmix64(seed_, next_++) % static_cast<uint64_t>(n));
  }
  bool one_in(int n) { return below(n) == 0; }

 private:
  uint64_t seed_, next_ = 0;
};

// All parameters of one request, so that it can run again alone.
struct Recipe {
  std::vector<int32_t> prompt, source, prediction, stop_ids;
  FakeImages images;
  wherry_params params{};
  uint64_t mask_seed = 0;  // seed of the grammar mask; 0 for none
  int mask_length = 0;
  wherry_mask mask{};

  const wherry_params& with_mask(int64_t vocab) {
    images.set(params);
    params.source = source.data();
    params.n_source = source.size();
    params.prediction = prediction.data();
    params.n_prediction = prediction.size();
    params.stop_ids = stop_ids.data();
    params.n_stop_ids = stop_ids.size();
    params.mask = nullptr;
    if (mask_seed != 0) {
      mask = FakeMask::make(vocab, mask_seed, mask_length);
      params.mask = &mask;
    }
    return params;
  }
};

struct Outcome {
  std::vector<int32_t> tokens;
  std::vector<float> embedding;
  std::vector<int32_t> prompt;  // prompt tokens whose logprobs were reported
  int finish = WHERRY_RUNNING;
};

class Storm {
 public:
  // plain: the share (0 to 1) of greedy requests without other options.
  Storm(FakeOptions options, const char* config, bool drafts, uint64_t seed, double plain = 0)
      : options_(options),
        plain_(plain),
        dice_(seed),
        model_(std::make_shared<FakeModel>(options)),
        engine_(model_, drafts ? draft_of(options) : nullptr,
                parse_engine_config(config, model_->metadata())) {}

  void run(int requests) {
    for (int i = 0; i < requests; ++i) {
      if (live_.size() < 12) add();
      if (dice_.one_in(9) && !live_.empty()) abort();
      if (dice_.one_in(400)) engine_.clear_cache();
      step();
    }
    for (int i = 0; !live_.empty(); ++i) {
      CHECK(i < 20000);
      step();
    }
    wherry_stats stats = engine_.stats();
    CHECK_EQ(stats.pages_free, stats.pages_total);
    engine_.clear_cache();
    CHECK_EQ(engine_.stats().pages_free, stats.pages_total);
    CHECK_EQ(engine_.stats().pages_cached, 0);
    CHECK_EQ(FakeMask::alive.load(), 0);
  }

  // Make each step of the model, and not of the draft model, take at least this long.
  void slow_steps(std::chrono::milliseconds least) {
    model_->on_launch = [least](const Batch&) { std::this_thread::sleep_for(least); };
  }

  // Makes each step of the model, and not of its block, take at least this long.
  void slow_forward(std::chrono::milliseconds least) { model_->forward_time = least; }

  wherry_stats stats() const { return engine_.stats(); }

 private:
  static std::shared_ptr<const Model> draft_of(FakeOptions options) {
    options.seed = 7;
    options.agrees = 0.8;
    options.window = 0;
    options.window_alone = false;
    options.encoder = false;
    options.recurrent = false;
    options.images = false;
    return std::make_shared<FakeModel>(options);
  }

  // Returns a prompt that shares a prefix with others: a random part of one of three stems, then
  // random tokens.
  std::vector<int32_t> random_prompt() {
    std::vector<int32_t> prompt;
    uint64_t stem = static_cast<uint64_t>(dice_.below(3));
    int shared = dice_.below(24), own = 1 + dice_.below(8);
    for (int i = 0; i < shared; ++i) {
      prompt.push_back(static_cast<int32_t>(splitmix64(stem, static_cast<uint64_t>(i)) % 64));
    }
    for (int i = 0; i < own; ++i) prompt.push_back(dice_.below(4));
    return prompt;
  }

  void add() {
    Recipe recipe;
    wherry_params& params = recipe.params;
    wherry_params_init(&params);
    recipe.prompt = random_prompt();
    if (options_.images) add_images(recipe);
    params.max_tokens = 1 + dice_.below(20);
    params.temperature = dice_.one_in(2) ? 0.0f : 0.8f;
    params.seed = static_cast<uint64_t>(dice_.below(5));
    params.repetition_penalty = dice_.one_in(3) ? 1.3f : 1.0f;
    params.priority = dice_.one_in(10) ? 1 : 0;
    params.user = static_cast<uint64_t>(dice_.below(3));
    params.salt = static_cast<uint64_t>(dice_.below(2));
    params.max_drafts = dice_.below(7) - 1;
    if (dice_.one_in(6)) params.prompt_logprobs = dice_.below(3);
    if (dice_.one_in(4)) recipe.prediction = random_prompt();
    if (dice_.one_in(3)) {
      recipe.mask_seed = 1 + static_cast<uint64_t>(dice_.below(9));
      recipe.mask_length = 1 + dice_.below(25);
    }
    if (options_.embeds && dice_.one_in(3)) params.embed = 1;
    if (options_.encoder) {
      for (int i = 1 + dice_.below(6); i > 0; --i) recipe.source.push_back(dice_.below(64));
    }
    if (dice_.below(1000) < 1000 * plain_) make_plain(recipe);
    if (dice_.one_in(3)) recipe.stop_ids.push_back(dice_.below(static_cast<int>(options_.vocab)));
    uint64_t id = next_++;
    engine_.add(id, recipe.prompt.data(), recipe.prompt.size(), recipe.with_mask(options_.vocab));
    live_.emplace(id, std::make_pair(std::move(recipe), Outcome{}));
  }

  // Appends up to two of a few images, and a token.
  void add_images(Recipe& recipe) {
    for (int images = dice_.below(3); images > 0; --images) {
      const auto seed = static_cast<uint8_t>(dice_.below(5));
      recipe.images.append(recipe.prompt, 3 + seed % 3, seed);
      if (dice_.one_in(2)) recipe.prompt.push_back(dice_.below(4));
    }
    recipe.prompt.push_back(dice_.below(4));
  }

  void make_plain(Recipe& recipe) {
    if (!options_.draws) recipe.params.temperature = 0;
    if (dice_.one_in(3)) recipe.params.top_p = 0.8f;
    if (dice_.one_in(4)) recipe.params.top_k = 1 + dice_.below(20);
    recipe.params.repetition_penalty = 1;
    recipe.params.max_drafts = 0;
    recipe.mask_seed = 0;
    for (int i = 0; i < 12; ++i) {  // adds stop ids, so that many requests end early
      recipe.stop_ids.push_back(dice_.below(static_cast<int>(options_.vocab)));
    }
  }

  void abort() {
    auto it = live_.begin();
    std::advance(it, dice_.below(static_cast<int>(live_.size())));
    try {
      engine_.abort(it->first);
    } catch (const Error&) {  // the request has already ended, and its last event is queued
    }
  }

  void step() {
    wherry_event events[64];
    std::string error;
    engine_.launch();
    if (dice_.one_in(20) && !live_.empty()) abort();
    for (int waits = 0; !engine_.ready(); ++waits) CHECK(waits < 2);
    size_t n = engine_.collect(events, 64, &error);
    for (size_t i = 0; i < n; ++i) take(events[i]);
  }

  void take(const wherry_event& event) {
    auto it = live_.find(event.id);
    CHECK(it != live_.end());
    Outcome& outcome = it->second.second;
    if (event.token >= 0) (event.prompt ? outcome.prompt : outcome.tokens).push_back(event.token);
    if (event.n_embedding > 0) {
      outcome.embedding.assign(event.embedding, event.embedding + event.n_embedding);
    }
    if (event.finish == WHERRY_RUNNING) return;
    outcome.finish = event.finish;
    check(it->second.first, outcome);
    live_.erase(it);
  }

  void check(Recipe& recipe, const Outcome& outcome) {
    if (recipe.params.embed) {
      if (outcome.finish == WHERRY_ABORTED) return;
      CHECK_EQ(outcome.finish, WHERRY_DONE);
      CHECK(outcome.embedding ==
            fake_embedding(options_, with_fake_features(recipe.prompt, recipe.params)));
      return;
    }
    std::vector<int32_t> expected =
        fake_output(options_, recipe.prompt, recipe.with_mask(options_.vocab), options_.context);
    if (outcome.finish == WHERRY_ABORTED) {
      CHECK(outcome.tokens.size() <= expected.size());
      expected.resize(outcome.tokens.size());
    } else {
      CHECK(outcome.finish == WHERRY_LENGTH || outcome.finish == WHERRY_STOP);
      std::vector<int32_t> reported;
      if (recipe.params.prompt_logprobs >= 0) {
        reported.assign(recipe.prompt.begin() + 1, recipe.prompt.end());
      }
      CHECK(outcome.prompt == reported);
    }
    CHECK(outcome.tokens == expected);
  }

  FakeOptions options_;
  double plain_;
  Dice dice_;
  std::shared_ptr<FakeModel> model_;
  Engine engine_;
  std::map<uint64_t, std::pair<Recipe, Outcome>> live_;
  uint64_t next_ = 0;
};

FakeOptions chaining() {
  FakeOptions options;
  options.vocab = 400;
  options.sharpness = 6;
  options.candidates = 70;
  options.error = 1e-4;
  options.asynchronous = options.chains = true;
  options.wrong_choices = 0.03;
  return options;
}

// The KV cache has 26 pages of 4 tokens, of which one request may need 14, so preemptions are
// frequent.
const char* const kTiny =
    R"({"max_batch": 6, "prefill_chunk": 12, "kv_tokens": 104, "max_drafts": 4})";

TEST(ten_thousand_requests_with_every_feature) {
  Storm storm({}, kTiny, true, 1);
  storm.run(10000);
  wherry_stats stats = storm.stats();
  CHECK(stats.preemptions > 100);
  CHECK(stats.cached_tokens > 10000);
  CHECK(stats.recomputed_tokens > 100);
}

// The number of draft tokens follows measured time: here a step costs far more than its rows.
TEST(draft_tokens_pay) {
  Storm storm({}, kTiny, true, 13);
  storm.slow_steps(std::chrono::milliseconds(2));
  storm.run(1000);
  wherry_stats stats = storm.stats();
  CHECK(stats.accepted_tokens > 100);
  CHECK(stats.drafted_tokens > stats.accepted_tokens);
}

TEST(with_a_window) {
  FakeOptions options;
  options.window = 9;
  Storm storm(options, kTiny, true, 2);
  storm.run(4000);
  CHECK(storm.stats().cached_tokens > 1000);
}

TEST(with_a_window_alone_and_less_cache_than_a_sequence) {
  FakeOptions options;
  options.window = 9;
  options.window_alone = true;
  const char* config =
      R"({"max_batch": 6, "prefill_chunk": 12, "kv_tokens": 24, "context": 64, "max_drafts": 4})";
  Storm storm(options, config, true, 12);
  storm.run(2000);
  CHECK(storm.stats().preemptions > 10);
}

TEST(with_a_recurrent_state) {
  FakeOptions options;
  options.recurrent = true;
  Storm storm(options, kTiny, false, 3);
  storm.run(4000);
  CHECK(storm.stats().cached_tokens > 1000);
  storm.slow_steps(std::chrono::milliseconds(2));  // draft tokens pay from here on
  storm.run(500);
  CHECK(storm.stats().drafted_tokens > storm.stats().accepted_tokens);
}

TEST(with_a_block_of_multi_token_prediction) {
  for (bool recurrent : {false, true}) {
    FakeOptions options;
    options.block = true;
    options.recurrent = recurrent;
    options.embeds = true;
    options.agrees = 0.8;
    Storm storm(options, kTiny, false, 16);
    storm.slow_forward(std::chrono::milliseconds(2));
    storm.run(700);
    storm.slow_forward(std::chrono::milliseconds(0));
    storm.run(4000);
    wherry_stats stats = storm.stats();
    CHECK(stats.accepted_tokens > 100);
    CHECK(stats.drafted_tokens > stats.accepted_tokens);
    CHECK(stats.preemptions > 10);
    CHECK(stats.cached_tokens > 1000);
  }
}

TEST(with_a_block_on_a_device) {
  FakeOptions options;
  options.vocab = 400;
  options.sharpness = 6;
  options.candidates = 70;
  options.error = 1e-4;
  options.asynchronous = true;
  options.block = true;
  options.window = 9;
  options.agrees = 0.8;
  Storm storm(options, kTiny, false, 17);
  storm.run(4000);
  CHECK(storm.stats().drafted_tokens > 0);
}

TEST(with_a_block_beside_chained_steps) {
  FakeOptions options = chaining();
  options.block = true;
  Storm storm(options, kTiny, false, 18, 0.95);
  storm.run(4000);
  CHECK(storm.stats().chained_steps > 30);
}

TEST(with_an_encoder) {
  FakeOptions options;
  options.encoder = true;
  Storm storm(options, kTiny, false, 4);
  storm.run(3000);
}

// The store of image features has room for two or three tiles.
const char* const kFewRows = R"({"max_batch": 6, "prefill_chunk": 12, "kv_tokens": 104,
                                 "max_drafts": 4, "image_rows": 12})";

TEST(with_images) {
  FakeOptions options;
  options.images = true;
  options.embeds = true;
  Storm storm(options, kFewRows, true, 19);
  storm.run(8000);
  wherry_stats stats = storm.stats();
  CHECK(stats.images_encoded > 500);
  CHECK(stats.preemptions > 50);
  CHECK(stats.cached_tokens > 5000);
}

TEST(with_images_and_a_recurrent_state) {
  FakeOptions options;
  options.images = true;
  options.recurrent = true;
  Storm storm(options, kFewRows, false, 20);
  storm.run(4000);
  CHECK(storm.stats().images_encoded > 200);
}

TEST(with_images_and_a_window) {
  FakeOptions options;
  options.images = true;
  options.window = 9;
  options.block = true;
  Storm storm(options, kFewRows, false, 21);
  storm.run(4000);
  CHECK(storm.stats().images_encoded > 200);
}

TEST(with_images_beside_chained_steps) {
  FakeOptions options = chaining();
  options.images = true;
  Storm storm(options, kFewRows, false, 22, 0.95);
  storm.run(6000);
  CHECK(storm.stats().images_encoded > 200);
  CHECK(storm.stats().chained_steps > 30);
  CHECK(storm.stats().wasted_rows > 5);
}

TEST(with_embeddings_between) {
  FakeOptions options;
  options.embeds = true;
  Storm storm(options, kTiny, true, 5);
  storm.run(4000);
}

TEST(with_rows_that_stay_on_a_device) {
  FakeOptions options;
  options.vocab = 400;
  options.sharpness = 6;
  options.candidates = 70;
  options.error = 1e-4;
  options.asynchronous = true;
  Storm storm(options, kTiny, true, 7);
  storm.run(4000);
  wherry_stats stats = storm.stats();
  // A third of the requests has masks, a third penalties.
  CHECK(stats.candidate_rows > stats.whole_rows / 2);
  CHECK(stats.whole_rows > 1000);
  CHECK(stats.readback_bytes > 0);
}

// Simulates a browser, where no call can block until the device has finished.
TEST(with_rows_that_must_be_requested) {
  FakeOptions options;
  options.vocab = 400;
  options.sharpness = 6;
  options.candidates = 70;
  options.error = 1e-4;
  options.asynchronous = true;
  options.asks = true;
  // No draft model, because it would have to wait for the device.
  Storm storm(options, kTiny, false, 7);
  storm.run(4000);
  wherry_stats stats = storm.stats();
  CHECK(stats.candidate_rows > stats.whole_rows / 2);
  CHECK(stats.whole_rows > 1000);
}

TEST(with_the_next_step_prepared) {
  FakeOptions options;
  options.asynchronous = true;
  Storm storm(options, kTiny, true, 8);
  storm.run(10000);
  wherry_stats stats = storm.stats();
  CHECK(stats.preemptions > 100);
  CHECK(stats.cached_tokens > 10000);
  CHECK(stats.overlapped_seconds > 0);
  CHECK(stats.overlapped_seconds < stats.host_seconds + stats.sample_seconds);
  CHECK_EQ(stats.chained_steps, 0u);
}

TEST(with_steps_that_are_launched_before_the_last_one_was_read) {
  Storm storm(chaining(), kTiny, false, 10, 0.95);
  storm.run(10000);
  wherry_stats stats = storm.stats();
  CHECK(stats.chained_steps > 200);
  CHECK(stats.wasted_rows > 50);
  CHECK(stats.preemptions > 50);
  CHECK(stats.cached_tokens > 5000);
}

TEST(with_tokens_that_the_device_draws) {
  FakeOptions options = chaining();
  options.draws = true;
  Storm storm(options, kTiny, false, 15, 0.95);
  storm.run(6000);
  CHECK(storm.stats().chained_steps > 200);
  CHECK(storm.stats().wasted_rows > 50);
}

TEST(chained_steps_beside_every_feature) {
  Storm storm(chaining(), kTiny, true, 11, 0.6);
  storm.run(5000);
  storm.slow_steps(std::chrono::milliseconds(2));  // draft tokens pay from here on
  storm.run(1000);
  CHECK(storm.stats().chained_steps > 0);
  CHECK(storm.stats().accepted_tokens > 0);
}

TEST(chained_steps_of_one_request_at_a_time) {
  Storm storm(chaining(), R"({"max_batch": 1, "prefill_chunk": 12, "kv_tokens": 64})", false, 12,
              0.9);
  storm.run(3000);
  CHECK(storm.stats().chained_steps > 200);
}

TEST(chained_steps_with_a_window) {
  FakeOptions options = chaining();
  options.window = 9;
  Storm storm(options, kTiny, false, 13, 0.95);
  storm.run(4000);
  CHECK(storm.stats().chained_steps > 30);
}

TEST(chained_steps_with_an_encoder) {
  FakeOptions options = chaining();
  options.encoder = true;
  Storm storm(options, kTiny, false, 14, 0.95);
  storm.run(4000);
  CHECK(storm.stats().chained_steps > 30);
}

TEST(with_a_window_and_the_next_step_prepared) {
  FakeOptions options;
  options.window = 9;
  options.asynchronous = true;
  options.encoder = true;
  Storm(options, kTiny, true, 9).run(4000);
}

TEST(with_few_rows_of_logits) {
  FakeOptions options;
  options.logit_rows = 7;
  Storm storm(options, kTiny, true, 6);
  storm.run(3000);
}

}  // namespace
}  // namespace wherry
