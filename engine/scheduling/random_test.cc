// Runs random requests of text; see testing/storm.h.
#include "testing/storm.h"
#include "testing/testing.h"

namespace wherry {
namespace {

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
