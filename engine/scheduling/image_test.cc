// Tests requests with images, step by step.
#include "testing/image_bench.h"
#include "testing/testing.h"

namespace wherry {
namespace {

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
