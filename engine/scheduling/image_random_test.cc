// Runs random requests with images; see testing/storm.h.
#include "testing/storm.h"
#include "testing/testing.h"

namespace wherry {
namespace {

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

TEST(with_grids_of_images) {
  for (bool recurrent : {false, true}) {
    FakeOptions options;
    options.images = true;
    options.rope_positions = true;
    options.embeds = true;
    options.recurrent = recurrent;
    Storm storm(options, kFewRows, !recurrent, 23);
    storm.run(3000);
    CHECK(storm.stats().images_encoded > 100);
    CHECK(storm.stats().cached_tokens > (recurrent ? 100u : 1000u));
    CHECK(storm.stats().preemptions > 10);
  }
}

TEST(with_grids_beside_chained_steps) {
  FakeOptions options = chaining();
  options.images = options.rope_positions = true;
  Storm storm(options, kFewRows, false, 24, 0.95);
  storm.run(3000);
  CHECK(storm.stats().images_encoded > 100);
  CHECK(storm.stats().chained_steps > 30);
}

TEST(with_grids_and_a_block_that_drafts) {
  FakeOptions options;
  options.images = options.rope_positions = options.block = true;
  options.agrees = 0.8;
  options.tower = {12, 2, 4, true, true};
  Storm storm(options, kFewRows, false, 25);
  storm.slow_forward(std::chrono::milliseconds(2));
  storm.run(500);
  storm.slow_forward(std::chrono::milliseconds(0));
  storm.run(2500);
  CHECK(storm.stats().accepted_tokens > 100);
  CHECK(storm.stats().preemptions > 10);
}

TEST(with_complete_images) {
  for (bool recurrent : {false, true}) {
    FakeOptions options;
    options.images = options.last_visible = true;
    options.embeds = true;
    options.recurrent = recurrent;
    Storm storm(options, kFewRows, !recurrent, 26);
    storm.run(3000);
    CHECK(storm.stats().images_encoded > 100);
    CHECK(storm.stats().preemptions > 10);
  }
}

// Six running requests leave no room for an image of five rows next to them.
TEST(with_complete_images_in_small_steps) {
  FakeOptions options;
  options.images = options.last_visible = options.rope_positions = true;
  options.window = 9;
  options.logit_rows = 6;
  const char* config = R"({"max_batch": 6, "prefill_chunk": 6, "kv_tokens": 104,
                           "max_drafts": 4, "image_rows": 12})";
  Storm storm(options, config, true, 27);
  storm.run(3000);
  CHECK(storm.stats().images_encoded > 100);
}

TEST(with_complete_images_beside_chained_steps) {
  FakeOptions options = chaining();
  options.images = options.last_visible = true;
  options.block = true;
  Storm storm(options, kFewRows, false, 28, 0.95);
  storm.run(3000);
  CHECK(storm.stats().images_encoded > 100);
  CHECK(storm.stats().chained_steps > 30);
}

}  // namespace
}  // namespace wherry
