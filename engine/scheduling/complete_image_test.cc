// Tests models whose rows of an image attend to each other, so that a step computes all of them.
#include <algorithm>

#include "testing/image_bench.h"
#include "testing/testing.h"

namespace wherry {
namespace {

FakeOptions attending() {
  FakeOptions options = seeing();
  options.last_visible = true;
  return options;
}

TEST(rows_of_text_see_themselves_and_those_of_images_the_image) {
  Bench bench(R"({"max_batch": 1, "prefill_chunk": 64})", attending());
  std::vector<int32_t> last;
  bench.model->on_launch = [&](const Batch& batch) {
    last.insert(last.end(), batch.last_visible.begin(), batch.last_visible.end());
  };
  Prompt prompt;
  prompt.text(2, 1).image(1, 3).image(2, 2).text(2, 9);
  bench.add(1, prompt, 3);
  bench.run();
  bench.check(1, prompt, 3);
  CHECK((last == std::vector<int32_t>{0, 1, 4, 4, 4, 6, 6, 7, 8, 9, 10}));
}

TEST(chunks_do_not_end_inside_images) {
  const Prompt prompt = three_images();  // 8, 6 and 7 rows
  for (bool recurrent : {false, true}) {
    FakeOptions options = attending();
    options.recurrent = recurrent;
    for (int chunk : {8, 9, 11, 13, 14, 64}) {
      Bench bench(concat(R"({"max_batch": 2, "prefill_chunk": )", chunk, "}").c_str(), options);
      Prompt longer = prompt;
      longer.text(5, 11);
      bench.add(1, prompt);
      bench.add(2, longer);
      bench.run();
      bench.check(1, prompt);
      bench.check(2, longer);
    }
  }
}

TEST(an_image_larger_than_a_step_is_refused) {
  Bench bench(R"({"max_batch": 1, "prefill_chunk": 7})", attending());
  Prompt prompt;
  prompt.text(2, 1).image(1, 8).text(1, 1);
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt)),
                 "images[0] has 8 rows, which attend to each other, so that one step must compute "
                 "all; the engine's steps have 7: give prefill_chunk of at least 8");
  Prompt fits;
  fits.text(2, 1).image(1, 7).text(1, 1);
  bench.add(1, fits);
  bench.run();
  bench.check(1, fits);
}

TEST(an_image_with_more_rows_of_logits_than_a_step_is_refused) {
  FakeOptions options = attending();
  options.logit_rows = 6;
  Bench bench(R"({"max_batch": 2, "prefill_chunk": 8})", options);
  Prompt prompt, fits, text;
  prompt.text(2, 1).image(1, 7).text(1, 1);
  fits.text(2, 1).image(1, 6).text(1, 1);
  text.text(3, 2);
  wherry_params params = prompt.params();
  params.prompt_logprobs = 0;
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt, params)),
                 "it has logits of 6 rows: give no prompt_logprobs");
  bench.add(1, prompt);
  bench.add(2, text, 30);  // takes a row of logits in each step
  bench.run();
  bench.check(1, prompt);
  wherry_params reported = fits.params();
  reported.prompt_logprobs = 0;
  bench.add(3, text, 30);
  for (int i = 0; i < 4; ++i) bench.step();
  bench.add(4, fits, reported);
  bench.run();
  CHECK_EQ(bench.results[4].tokens.size(), fits.tokens.size() - 1 + 5);
}

// Neither the time of running requests nor their rows keep an image out, and it does not keep them
// out for long.
TEST(an_image_that_fills_a_step_takes_turns_with_running_requests) {
  Bench bench(R"({"max_batch": 4, "prefill_chunk": 8, "kv_tokens": 512})", attending());
  bench.model->forward_time = std::chrono::milliseconds(1);
  Prompt text;
  text.text(5, 2);
  bench.add(1, text, 60);
  for (int i = 0; i < 6; ++i) bench.step();
  Prompt prompt;
  for (uint8_t seed = 1; seed <= 5; ++seed) prompt.image(seed, 8);
  prompt.text(2, 3);
  bench.add(2, prompt);
  size_t before = bench.results[1].tokens.size();
  int without = 0, most = 0;
  while (bench.results[2].finish == WHERRY_RUNNING) {
    bench.step();
    const size_t now = bench.results[1].tokens.size();
    without = now == before ? without + 1 : 0;
    most = std::max(most, without);
    before = now;
    CHECK(bench.results[1].finish == WHERRY_RUNNING);  // the image did not wait for its end
  }
  CHECK(most <= 2);  // a step of the tower, and one of the image's rows
  bench.run();
  bench.check(1, text, 60);
  bench.check(2, prompt);
}

// The last row of a prompt is always computed; here it attends to all of its image.
TEST(a_hit_may_end_inside_a_complete_image) {
  Bench bench(R"({"image_rows": 11})", attending());
  Prompt prompt, other;
  prompt.text(3, 1).image(1, 11);
  other.text(3, 1).image(2, 11);
  bench.add(1, prompt);
  bench.run();
  bench.add(2, other);
  bench.run();
  bench.add(3, prompt);
  bench.run();
  for (uint64_t id : {1, 3}) bench.check(id, prompt);
  bench.check(2, other);
  CHECK_EQ(bench.results[3].cached, 13);
  CHECK_EQ(bench.seen, 3);  // the features of its last row were evicted
}

// A hit also ends where the pages end that are not evicted.
TEST(a_preempted_request_continues_inside_a_complete_image) {
  Bench bench(R"({"max_batch": 3, "prefill_chunk": 12, "kv_tokens": 72, "context": 64,
                  "image_rows": 16})",
              attending());
  std::vector<Prompt> prompts(3);
  for (uint8_t id = 0; id < 3; ++id) {
    prompts[id].text(2, id).image(id, 11).text(1, id);
    bench.add(id, prompts[id], 25);
  }
  bench.run();
  for (uint8_t id = 0; id < 3; ++id) bench.check(id, prompts[id], 25);
  CHECK(bench.engine.stats().preemptions > 0);
}

TEST(pages_of_a_window_must_hold_an_image) {
  FakeOptions options = attending();
  options.window = 5;
  options.window_alone = true;
  Bench bench(R"({"max_batch": 1, "prefill_chunk": 16, "kv_tokens": 16, "context": 64})", options);
  Prompt large, fits;
  large.text(9, 1).image(1, 16).text(2, 3);
  fits.text(9, 1).image(1, 6).text(2, 3);
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, large)),
                 "an image has 16 rows, which one step must compute; the pages of layers with a "
                 "window hold");
  bench.add(1, fits);
  bench.run();
  bench.check(1, fits);
}

}  // namespace
}  // namespace wherry
