// Tests the places of rows on M-RoPE's axes.
#include "testing/fake_logits.h"
#include "testing/fake_rows.h"
#include "testing/image_bench.h"
#include "testing/testing.h"

namespace wherry {
namespace {

FakeOptions placing() {
  FakeOptions options = seeing();
  options.rope_positions = true;
  return options;
}

// Two images with grids, and one whose rows advance as text does.
Prompt with_grids() {
  Prompt prompt;
  prompt.text(3, 1).grid(1, 2, 4).text(2, 9).image(2, 3).grid(3, 3, 2).text(2, 30);
  return prompt;
}

TEST(places_of_text_and_grids) {
  Bench bench(R"({"max_batch": 1, "prefill_chunk": 64, "prefix_cache": false})", placing());
  std::vector<int32_t> last;
  bench.model->on_launch = [&](const Batch& batch) {
    last.insert(last.end(), batch.rope_positions.begin(), batch.rope_positions.end());
  };
  bench.add(1, with_grids(), 3);
  bench.run();
  bench.check(1, with_grids(), 3);
  const std::vector<int32_t> expected{
      0,  0,  0,  1,  1,  1,  2,  2,  2,                           // text
      3,  3,  3,  3,  3,  4,  3,  3,  5,  3,  3,  6,               // a grid of 2 x 4 from 3 on
      3,  4,  3,  3,  4,  4,  3,  4,  5,  3,  4,  6,               //
      7,  7,  7,  8,  8,  8,                                       // text, after the longer side
      9,  9,  9,  10, 10, 10, 11, 11, 11,                          // an image without a grid
      12, 12, 12, 12, 12, 13, 12, 13, 12, 12, 13, 13, 12, 14, 12,  // a grid of 3 x 2
      12, 14, 13,                                                  //
      15, 15, 15, 16, 16, 16,                                      // text
      17, 17, 17, 18, 18, 18};                                     // two of the output's tokens
  CHECK(last == expected);
}

TEST(chunks_and_hits_do_not_change_places) {
  const Prompt prompt = with_grids();
  for (bool recurrent : {false, true}) {
    FakeOptions options = placing();
    options.recurrent = recurrent;
    for (int chunk : {1, 2, 3, 5, 8, 13, 64}) {
      Bench bench(concat(R"({"max_batch": 1, "prefill_chunk": )", chunk, "}").c_str(), options);
      for (uint64_t id : {1, 2}) {
        bench.add(id, prompt, 12);
        bench.run();
        bench.check(id, prompt, 12);
      }
      CHECK(bench.results[2].cached >= 20);
      Prompt longer = prompt;  // the next turn of a chat continues the prompt and the output
      const std::vector<int32_t>& output = bench.results[1].tokens;
      longer.tokens.insert(longer.tokens.end(), output.begin(), output.end());
      longer.text(3, 11).grid(4, 2, 2).text(1, 5);
      bench.add(3, longer);
      bench.run();
      bench.check(3, longer);
      CHECK(bench.results[3].cached >= 20);
    }
  }
}

// Tokens, digests and rows are equal; only the places differ.
TEST(grids_of_one_image_never_share_a_page) {
  Bench bench("{}", placing());
  uint64_t id = 0;
  for (size_t rows : {1, 2, 4, 8}) {
    Prompt prompt;
    prompt.text(4, 1).grid(1, rows, 8 / rows).text(5, 30);
    bench.add(++id, prompt);
    bench.run();
    bench.check(id, prompt);
    CHECK(bench.results[id].cached <= 4);
  }
  CHECK_EQ(bench.seen, 1);
}

TEST(preempted_requests_keep_their_places) {
  Bench bench(R"({"max_batch": 4, "prefill_chunk": 8, "kv_tokens": 96, "context": 64,
                  "image_rows": 16, "prefix_cache": false})",
              placing());
  std::vector<Prompt> prompts(4);
  for (uint8_t id = 0; id < 4; ++id) {
    prompts[id].text(2, id).grid(id, 2, 4).grid(9, 7, 1).text(1, id);
    bench.add(id, prompts[id], 20);
  }
  bench.run();
  for (uint8_t id = 0; id < 4; ++id) bench.check(id, prompts[id], 20);
  CHECK(bench.engine.stats().preemptions > 0);
}

TEST(launch_ahead_at_the_right_places) {
  FakeOptions options = placing();
  options.candidates = 40;
  options.asynchronous = options.chains = true;
  Bench bench(R"({"max_drafts": 0, "prefill_chunk": 16})", options);
  bench.add(1, with_grids(), 40);
  bench.run();
  bench.check(1, with_grids(), 40);
  CHECK(bench.engine.stats().chained_steps > 20);
}

// The block's rows are at the model's places, so it agrees with the model; a draft model takes
// places, too, but has no images.
TEST(draft_tokens_are_at_the_right_places) {
  const Prompt prompt = with_grids();
  Prompt text;
  text.text(9, 3);
  for (bool block : {true, false}) {
    FakeOptions options = placing(), drafting = placing();
    options.block = block;
    drafting.images = false;
    auto draft = std::make_shared<FakeModel>(drafting);
    Bench bench(R"({"max_drafts": 4})", options, block ? nullptr : draft);
    bench.model->forward_time = std::chrono::milliseconds(2);
    bench.add(1, text, 20);
    bench.run();
    bench.check(1, text, 20);
    wherry_stats stats = bench.engine.stats();
    CHECK(stats.accepted_tokens > 0);
    bench.add(2, prompt, 20);
    bench.run();
    bench.check(2, prompt, 20);
    const uint64_t accepted = bench.engine.stats().accepted_tokens - stats.accepted_tokens;
    const uint64_t drafted = bench.engine.stats().drafted_tokens - stats.drafted_tokens;
    CHECK_EQ(drafted > 0, block);
    CHECK_EQ(accepted, drafted);
  }
}

TEST(embeddings_have_places) {
  FakeOptions options = placing();
  options.embeds = true;
  Bench bench(R"({"prefill_chunk": 8})", options);
  wherry_params params = with_grids().params();
  const Prompt prompt = with_grids();
  prompt.images.set(params);
  params.embed = 1;
  bench.add(1, prompt, params);
  bench.run();
  CHECK(bench.results[1].embedding ==
        fake_embedding(with_fake_features(options, prompt.tokens, params)));
}

}  // namespace
}  // namespace wherry
