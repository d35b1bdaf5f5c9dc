// Tests requests with images, step by step.
#include <cmath>
#include <map>

#include "scheduling/engine.h"
#include "testing/fake_images.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

FakeOptions seeing() {
  FakeOptions options;
  options.images = true;
  options.context = 128;
  return options;
}

// A request with images; `text` and images are appended in the order of calls.
struct Prompt {
  Prompt& text(int length, int first) {
    for (int i = 0; i < length; ++i) tokens.push_back((first + 7 * i) % 64);
    return *this;
  }
  Prompt& image(uint8_t seed, int rows = 8) {
    images.append(tokens, rows, seed);
    return *this;
  }
  wherry_params params(int max_tokens = 5) const {
    wherry_params params;
    wherry_params_init(&params);
    params.temperature = 0;
    params.max_tokens = max_tokens;
    images.set(params);
    return params;
  }

  std::vector<int32_t> tokens;
  FakeImages images;
};

struct Result {
  std::vector<int32_t> tokens;
  int finish = WHERRY_RUNNING;
  int32_t cached = 0;
  std::string error;
};

struct Bench {
  explicit Bench(const char* config = "{}", FakeOptions given = seeing(),
                 std::shared_ptr<const Model> draft = nullptr)
      : options(given),
        model(std::make_shared<FakeModel>(options)),
        engine(model, std::move(draft), parse_engine_config(config, model->metadata())) {
    model->on_see = [this](const ImageTile&) { ++seen; };
  }

  void add(uint64_t id, const Prompt& prompt, const wherry_params& params) {
    engine.add(id, prompt.tokens.data(), prompt.tokens.size(), params);
  }
  void add(uint64_t id, const Prompt& prompt, int max_tokens = 5) {
    add(id, prompt, prompt.params(max_tokens));
  }

  void collect() {
    wherry_event events[64];
    std::string error;
    size_t n = engine.collect(events, 64, &error);
    for (size_t i = 0; i < n; ++i) {
      Result& result = results[events[i].id];
      CHECK_EQ(result.finish, WHERRY_RUNNING);
      result.finish = events[i].finish;
      result.cached = events[i].cached_tokens;
      if (events[i].token >= 0) result.tokens.push_back(events[i].token);
      if (events[i].finish == WHERRY_ERROR) result.error = error;
    }
  }
  void step() {
    engine.launch();
    collect();
  }
  bool busy() const {
    wherry_stats stats = engine.stats();
    return stats.waiting + stats.prefilling + stats.running > 0;
  }
  void run() {
    for (int steps = 0; busy(); ++steps) {
      CHECK(steps < 2000);
      step();
    }
    CHECK_EQ(engine.stats().pages_free, engine.stats().pages_total);
  }

  void check(uint64_t id, const Prompt& prompt, int max_tokens = 5) {
    CHECK(results[id].tokens ==
          fake_output(options, prompt.tokens, prompt.params(max_tokens), options.context));
    CHECK_EQ(results[id].finish, WHERRY_LENGTH);
  }

  FakeOptions options;
  std::shared_ptr<FakeModel> model;
  Engine engine;
  std::map<uint64_t, Result> results;
  int seen = 0;
};

Prompt three_images() {
  Prompt prompt;
  prompt.text(3, 1).image(1).text(2, 9).image(2, 6).image(3, 7).text(4, 30);
  return prompt;
}

TEST(images_change_what_the_model_says) {
  const Prompt prompt = three_images();
  Prompt other;
  other.text(3, 1).image(1).text(2, 9).image(4, 6).image(3, 7).text(4, 30);
  CHECK(prompt.tokens == other.tokens);
  Bench bench;
  bench.add(1, prompt);
  bench.add(2, other);
  bench.run();
  bench.check(1, prompt);
  bench.check(2, other);
  CHECK(bench.results[1].tokens != bench.results[2].tokens);
  CHECK_EQ(bench.seen, 4);
  CHECK_EQ(bench.engine.stats().images_encoded, 4u);
}

TEST(chunks_do_not_change_tokens) {
  const Prompt prompt = three_images();
  for (int chunk : {1, 2, 3, 5, 8, 13, 64}) {
    Bench bench(concat(R"({"max_batch": 1, "prefill_chunk": )", chunk, "}").c_str());
    bench.add(1, prompt);
    bench.run();
    bench.check(1, prompt);
    CHECK_EQ(bench.seen, 3);
  }
}

TEST(one_tile_is_a_step_between_those_of_running_requests) {
  Bench bench;
  Prompt text;
  text.text(5, 2);
  bench.add(1, text, 40);
  bench.step();
  Prompt prompt;
  for (uint8_t seed = 1; seed <= 6; ++seed) prompt.image(seed);
  prompt.text(1, 3);
  bench.add(2, prompt);
  size_t tokens = 0;
  while (bench.seen < 6) {
    const int seen = bench.seen;
    bench.step();
    if (bench.seen == seen) continue;
    CHECK_EQ(bench.seen, seen + 1);
    CHECK(bench.results[1].tokens.size() > tokens);
    tokens = bench.results[1].tokens.size();
  }
  bench.run();
  bench.check(1, text, 40);
  bench.check(2, prompt);
}

TEST(a_prefix_over_images_is_a_hit_without_their_features) {
  const Prompt prompt = three_images();
  Bench bench;
  bench.add(1, prompt);
  bench.run();
  bench.add(2, prompt);
  bench.run();
  bench.check(2, prompt);
  CHECK_EQ(bench.seen, 3);
  CHECK_EQ(bench.results[2].cached, static_cast<int>(prompt.tokens.size()) - 1);
}

// A recurrent state can only continue after a whole page, here inside the image.
TEST(a_hit_may_end_inside_an_image) {
  FakeOptions options = seeing();
  options.recurrent = true;
  Bench bench(R"({"image_rows": 11})", options);
  Prompt prompt, other;
  prompt.text(3, 1).image(1, 11).text(1, 30);
  other.text(3, 1).image(2, 11).text(1, 30);
  bench.add(1, prompt);
  bench.run();
  bench.add(2, prompt);
  bench.run();
  CHECK_EQ(bench.seen, 1);
  bench.add(3, other);
  bench.run();
  CHECK_EQ(bench.seen, 2);
  bench.add(4, prompt);
  bench.run();
  CHECK_EQ(bench.seen, 3);  // the features of its last rows were evicted
  for (uint64_t id : {1, 2, 4}) bench.check(id, prompt);
  bench.check(3, other);
  CHECK_EQ(bench.results[2].cached, 12);
  CHECK_EQ(bench.results[4].cached, 12);
}

// All digests have 31 equal bytes, and all placeholders are one token.
TEST(different_images_never_share_a_page) {
  Bench bench;
  for (uint8_t seed = 1; seed <= 20; ++seed) {
    Prompt prompt;
    prompt.text(4, 1).image(seed, 8).text(4, 30);
    bench.add(seed, prompt);
    bench.run();
    bench.check(seed, prompt);
    CHECK(bench.results[seed].cached <= 4);
  }
  CHECK_EQ(bench.seen, 20);
}

TEST(requests_with_one_image_encode_it_once) {
  for (bool share : {true, false}) {
    FakeOptions options = seeing();
    Bench bench(
        concat(R"({"max_batch": 32, "prefix_cache": )", share ? "true" : "false", "}").c_str(),
        options);
    std::vector<Prompt> prompts(32);
    for (int id = 0; id < 32; ++id) {
      prompts[static_cast<size_t>(id)].text(1 + id % 5, id).image(7, 10).text(3, id);
      bench.add(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)]);
    }
    bench.run();
    for (int id = 0; id < 32; ++id) {
      bench.check(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)]);
    }
    CHECK_EQ(bench.seen, 1);
  }
}

TEST(more_images_than_the_store_has_rows) {
  Bench bench(R"({"max_batch": 4, "prefill_chunk": 6, "image_rows": 9})");
  std::vector<Prompt> prompts(4);
  for (int id = 0; id < 4; ++id) {
    Prompt& prompt = prompts[static_cast<size_t>(id)];
    for (int i = 0; i < 5; ++i) {
      const int seed = (3 * id + i) % 7;
      prompt.text(1 + i % 2, id).image(static_cast<uint8_t>(seed), 3 + seed);
    }
    prompt.text(2, 50);
    bench.add(static_cast<uint64_t>(id), prompt);
  }
  bench.run();
  for (int id = 0; id < 4; ++id) {
    bench.check(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)]);
  }
  CHECK(bench.seen >= 7);
}

TEST(an_image_that_is_in_use_stays) {
  Bench bench(R"({"max_batch": 3, "prefill_chunk": 3, "image_rows": 16})");
  std::vector<Prompt> prompts(3);
  for (uint8_t id = 0; id < 3; ++id) {
    prompts[id].image(id, 8).text(1, 1);
    bench.add(id, prompts[id]);
  }
  bench.run();
  for (uint8_t id = 0; id < 3; ++id) bench.check(id, prompts[id]);
  CHECK_EQ(bench.seen, 3);
}

// The younger request's image lies where the older one's would need to be.
TEST(the_first_request_takes_the_room_of_younger_ones) {
  Bench bench(R"({"max_batch": 2, "prefill_chunk": 2, "image_rows": 8})");
  Prompt small, large;
  small.image(1, 3).text(1, 1);
  large.text(2, 2).image(2, 8).text(1, 1);
  bench.add(1, large);
  bench.add(2, small);
  bench.run();
  bench.check(1, large);
  bench.check(2, small);
  CHECK_EQ(bench.seen, 3);
}

TEST(preempted_requests_continue) {
  Bench bench(R"({"max_batch": 4, "prefill_chunk": 8, "kv_tokens": 96, "context": 64,
                  "image_rows": 16, "prefix_cache": false})");
  std::vector<Prompt> prompts(4);
  for (int id = 0; id < 4; ++id) {
    prompts[static_cast<size_t>(id)].text(2, id).image(static_cast<uint8_t>(id), 8).image(9, 7);
    prompts[static_cast<size_t>(id)].text(1, id);
    bench.add(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)], 20);
  }
  bench.run();
  for (int id = 0; id < 4; ++id) {
    bench.check(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)], 20);
  }
  CHECK(bench.engine.stats().preemptions > 0);
}

TEST(an_abort_while_the_tower_computes) {
  Bench bench;
  const Prompt prompt = three_images();
  bench.add(1, prompt);
  bench.step();  // the text before the first image
  bench.engine.launch();
  CHECK_EQ(bench.seen, 1);
  bench.engine.abort(1);
  bench.collect();
  CHECK_EQ(bench.results[1].finish, WHERRY_ABORTED);
  CHECK(!bench.busy());
  bench.add(2, prompt);
  bench.run();
  bench.check(2, prompt);
  CHECK_EQ(bench.seen, 3);  // the features of the first image stayed
}

TEST(a_failure_of_the_tower_fails_its_request_alone) {
  Bench bench;
  bench.model->on_see = [&](const ImageTile&) {
    if (++bench.seen == 2) throw Error(WHERRY_INTERNAL, "the tower is broken");
  };
  const Prompt prompt = three_images();
  Prompt text;
  text.text(6, 4);
  bench.add(1, prompt);
  bench.add(2, text);
  bench.run();
  CHECK_EQ(bench.results[1].finish, WHERRY_ERROR);
  CHECK_CONTAINS(bench.results[1].error, "the tower is broken");
  bench.check(2, text);
  bench.add(3, prompt);
  bench.run();
  bench.check(3, prompt);
  CHECK_EQ(bench.seen, 4);  // only what failed is computed again
  CHECK_EQ(bench.engine.stats().images_encoded, 3u);
}

TEST(a_reset_drops_features) {
  Bench bench;
  const Prompt prompt = three_images();
  bench.add(1, prompt);
  bench.step();
  bench.step();
  CHECK_EQ(bench.seen, 1);
  bench.engine.reset();
  bench.collect();
  CHECK_EQ(bench.results[1].finish, WHERRY_ABORTED);
  bench.add(2, prompt);
  bench.run();
  bench.check(2, prompt);
  CHECK_EQ(bench.seen, 4);
}

TEST(clear_cache_keeps_the_features_of_requests) {
  Bench bench(R"({"prefill_chunk": 8})");
  const Prompt prompt = three_images();
  bench.add(1, prompt);
  for (int i = 0; i < 8; ++i) {
    bench.engine.launch();
    bench.engine.clear_cache();
    bench.collect();
  }
  bench.run();
  bench.check(1, prompt);
  CHECK_EQ(bench.seen, 3);
  bench.engine.clear_cache();
  bench.add(2, prompt);
  bench.run();
  bench.check(2, prompt);
  CHECK_EQ(bench.seen, 6);
}

// Neither a draft model nor a block of multi-token prediction sees images; repetitions still count.
TEST(drafts_of_requests_with_images) {
  Prompt prompt;
  prompt.text(3, 1).image(1).text(4, 30);
  Prompt text;
  text.text(9, 3);
  FakeOptions drafting;
  drafting.context = 128;
  for (bool block : {true, false}) {
    FakeOptions options = seeing();
    options.block = block;
    auto draft = std::make_shared<FakeModel>(drafting);
    int draft_steps = 0;
    draft->on_launch = [&](const Batch&) { ++draft_steps; };
    Bench bench(R"({"max_drafts": 4})", options, block ? nullptr : draft);
    bench.model->forward_time = std::chrono::milliseconds(2);
    bench.add(1, prompt, 20);
    bench.run();
    bench.check(1, prompt, 20);
    CHECK_EQ(draft_steps, 0);
    const uint64_t drafted = bench.engine.stats().drafted_tokens;
    bench.add(2, text, 20);
    bench.run();
    bench.check(2, text, 20);
    CHECK(bench.engine.stats().drafted_tokens > drafted);
    CHECK(block || draft_steps > 0);
    wherry_params params = prompt.params(20);
    params.max_drafts = 4;
    const std::vector<int32_t> prediction = bench.results[1].tokens;
    params.prediction = prediction.data();
    params.n_prediction = prediction.size();
    bench.add(3, prompt, params);
    bench.run();
    bench.check(3, prompt, 20);
    CHECK(bench.engine.stats().accepted_tokens > 0);
  }
}

TEST(prefixes_on_disk_end_before_images) {
  testing::TemporaryFolder folder;
  const std::string config = concat(R"({"cache_dir": ")", folder.path(), R"(", "kv_tokens": 512})");
  Prompt prompt, other;
  prompt.text(10, 1).image(1, 8).text(9, 30);
  other.text(10, 1).image(2, 8).text(9, 30);
  {
    Bench bench(config.c_str());
    bench.add(1, prompt);
    bench.run();
    bench.check(1, prompt);
  }
  for (const Prompt& next : {prompt, other}) {
    Bench bench(config.c_str());
    bench.add(1, next);
    bench.run();
    bench.check(1, next);
    CHECK_EQ(bench.engine.stats().disk_tokens, 8u);
  }
}

TEST(wrong_images_are_named) {
  Bench bench(R"({"image_rows": 16})");
  struct Case {
    void (*change)(Prompt&);
    const char* text;
  };
  const Case cases[] = {
      {[](Prompt& p) { p.images.images[0].rows = 9; }, "images[0] has 9 rows and 16 patches"},
      {[](Prompt& p) { p.images.images[0].n_patches = 15; }, "8 rows and 15 patches"},
      {[](Prompt& p) { p.images.images[0].patch_bytes = 27; },
       "images[0] has patches of 27 bytes; the tower takes 12"},
      {[](Prompt& p) { p.images.images[1].first = 10; },
       "images[1] begins with token 10, before the end"},
      {[](Prompt& p) { p.images.images[1].first = 99; }, "the prompt has 30"},
      {[](Prompt& p) { p.images.images[1].first = SIZE_MAX - 2; }, "the prompt has 30"},
      {[](Prompt& p) { p.images.images[1].rows = 0; }, "images[1] has the tokens"},
      {[](Prompt& p) { p.images.images[2].levels = nullptr; }, "levels or positions is null"},
      {[](Prompt& p) {
         p.tokens.clear();
         p.images = {};
         p.text(1, 1).image(1, 17);
       },
       "images[0] has 17 rows; the engine has memory for 16 (image_rows)"},
  };
  for (const Case& one : cases) {
    Prompt prompt = three_images();
    CHECK_EQ(prompt.tokens.size(), 30u);
    one.change(prompt);
    CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt)), one.text);
  }
  const int32_t negative[] = {0, 1, -3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Prompt prompt = three_images();
  prompt.images.images[0].positions = negative;
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt)), "the position -3");
  std::vector<float> levels(3 * 256);
  levels[700] = INFINITY;
  prompt = three_images();
  prompt.images.images[2].levels = levels.data();
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt)), "not finite");
  wherry_params params = prompt.params();
  params.images = nullptr;
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt, params)), "images is null");
  Bench text("{}", FakeOptions());
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, text.add(1, three_images())),
                 "fake takes no images");
  CHECK(!bench.busy());
}

TEST(a_recurrent_state_with_images) {
  FakeOptions options = seeing();
  options.recurrent = true;
  for (int chunk : {3, 8, 64}) {
    Bench bench(concat(R"({"max_batch": 2, "prefill_chunk": )", chunk, "}").c_str(), options);
    Prompt longer = three_images();
    longer.text(5, 11);
    bench.add(1, three_images());
    bench.add(2, longer);
    bench.run();
    bench.check(1, three_images());
    bench.check(2, longer);
  }
}

TEST(launch_ahead_beside_images) {
  FakeOptions options = seeing();
  options.candidates = 40;
  options.asynchronous = options.chains = true;
  Bench bench(R"({"max_drafts": 0, "prefill_chunk": 16})", options);
  Prompt text;
  text.text(5, 2);
  bench.add(1, text, 60);
  for (int i = 0; i < 10; ++i) bench.step();
  bench.add(2, three_images(), 20);
  bench.run();
  bench.check(1, text, 60);
  bench.check(2, three_images(), 20);
  CHECK(bench.engine.stats().chained_steps > 20);
}

}  // namespace
}  // namespace wherry
