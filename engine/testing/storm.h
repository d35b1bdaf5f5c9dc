// Runs random requests on a tiny KV cache with all features on. Each request must give the same
// tokens as when it runs alone, and no page may leak.
#ifndef WHERRY_ENGINE_TESTING_STORM_H_
#define WHERRY_ENGINE_TESTING_STORM_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sampling/rng.h"
#include "scheduling/engine.h"
#include "testing/fake_images.h"
#include "testing/fake_logits.h"
#include "testing/fake_mask.h"
#include "testing/fake_model.h"
#include "testing/fake_rows.h"
#include "testing/testing.h"

namespace wherry {

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

struct Received {
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
    options.images = false;  // it may take what images need of text, too
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
    live_.emplace(id, std::make_pair(std::move(recipe), Received{}));
  }

  // Appends up to two of a few images, complete or in parts, and a token.
  void add_images(Recipe& recipe) {
    recipe.images = FakeImages(options_.tower);
    for (int images = dice_.below(3); images > 0; --images) {
      const auto seed = static_cast<uint8_t>(dice_.below(5));
      const int rows = 3 + seed % 3;
      if (dice_.one_in(4)) {
        recipe.images.append_parts(recipe.prompt, 2, rows / 2, seed, dice_.below(4));
      } else {
        set_grid(recipe.images.append(recipe.prompt, rows, seed), rows);
      }
      if (dice_.one_in(2)) recipe.prompt.push_back(dice_.below(4));
    }
    recipe.prompt.push_back(dice_.below(4));
  }

  // Gives an image one of its grids, or none.
  void set_grid(wherry_image& image, int rows) {
    const int side = dice_.below(rows + 1);
    if (side == 0 || rows % side != 0) return;
    image.grid_rows = static_cast<size_t>(side);
    image.grid_columns = static_cast<size_t>(rows / side);
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
    Received& outcome = it->second.second;
    if (event.token >= 0) (event.prompt ? outcome.prompt : outcome.tokens).push_back(event.token);
    if (event.n_embedding > 0) {
      outcome.embedding.assign(event.embedding, event.embedding + event.n_embedding);
    }
    if (event.finish == WHERRY_RUNNING) return;
    outcome.finish = event.finish;
    check(it->second.first, outcome);
    live_.erase(it);
  }

  void check(Recipe& recipe, const Received& outcome) {
    if (recipe.params.embed) {
      if (outcome.finish == WHERRY_ABORTED) return;
      CHECK_EQ(outcome.finish, WHERRY_DONE);
      CHECK(outcome.embedding ==
            fake_embedding(with_fake_features(options_, recipe.prompt, recipe.params)));
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
  std::map<uint64_t, std::pair<Recipe, Received>> live_;
  uint64_t next_ = 0;
};

inline FakeOptions chaining() {
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
constexpr const char* kTiny =
    R"({"max_batch": 6, "prefill_chunk": 12, "kv_tokens": 104, "max_drafts": 4})";

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_STORM_H_
