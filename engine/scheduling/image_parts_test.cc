// Tests prompts that show parts of a tile, and what towers take of its patches.
#include "testing/image_bench.h"
#include "testing/testing.h"

namespace wherry {
namespace {

// The rows of a picture, with a token between them, and text around.
Prompt in_parts(uint8_t seed) {
  Prompt prompt;
  prompt.text(3, 1);
  prompt.images.append_parts(prompt.tokens, 3, 4, seed, 60);
  prompt.text(3, 30);
  return prompt;
}

TEST(a_tile_in_parts_is_computed_once) {
  const Prompt prompt = in_parts(1);
  for (int chunk : {1, 3, 5, 64}) {
    Bench bench(concat(R"({"max_batch": 1, "prefill_chunk": )", chunk, "}").c_str());
    bench.add(1, prompt);
    bench.run();
    bench.check(1, prompt);
    CHECK_EQ(bench.seen, 1);
    bench.add(2, prompt);
    bench.run();
    bench.check(2, prompt);
    CHECK_EQ(bench.results[2].cached, static_cast<int>(prompt.tokens.size()) - 1);
  }
}

// The digest, the tokens and the features' tile are those of other parts.
TEST(parts_of_one_tile_never_share_a_page) {
  Bench bench;
  const Prompt prompt = in_parts(1);
  bench.add(1, prompt);
  bench.run();
  Prompt other = prompt;
  std::swap(other.images.images[0].first_feature, other.images.images[1].first_feature);
  bench.add(2, other);
  bench.run();
  bench.check(1, prompt);
  bench.check(2, other);
  CHECK(bench.results[1].tokens != bench.results[2].tokens);
  CHECK(bench.results[2].cached <= 4);
  CHECK_EQ(bench.seen, 1);
}

TEST(a_part_may_leave_out_rows) {
  Bench bench;
  Prompt prompt = in_parts(1);
  prompt.images.images.pop_back();  // its tokens are text now
  prompt.images.images[1].first_feature = 7;
  bench.add(1, prompt);
  bench.run();
  bench.check(1, prompt);
}

TEST(the_store_has_room_for_tiles_not_parts) {
  Bench bench(R"({"image_rows": 12, "prefill_chunk": 8})");
  for (uint8_t seed : {1, 2}) bench.add(seed, in_parts(seed));
  bench.run();
  for (uint8_t seed : {1, 2}) bench.check(seed, in_parts(seed));
  Bench small(R"({"image_rows": 11})");
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, small.add(1, in_parts(1))),
                 "images[2] has 12 rows; the engine has memory for 11 (image_rows)");
}

TEST(towers_take_weighted_positions_and_coordinates_or_none) {
  const TowerSpec towers[] = {{12, 2, 1, false, false},
                              {12, 2, 4, true, false},
                              {12, 2, 1, true, true},
                              {12, 2, 0, false, true},
                              {12, 2, 0, false, false}};
  for (const TowerSpec& tower : towers) {
    FakeOptions options = seeing();
    options.tower = tower;
    Bench bench("{}", options);
    Prompt prompt;
    prompt.images = FakeImages(tower);
    prompt.text(3, 1).image(1).text(1, 9).image(2, 4).text(2, 3);
    bench.add(1, prompt);
    bench.run();
    bench.check(1, prompt);
    Prompt other;  // the usual tower's images
    other.text(3, 1).image(1).text(2, 3);
    const bool usual = tower.taps == 1 && !tower.coordinates;
    if (usual) continue;
    CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(2, other)), "the tower takes");
  }
}

}  // namespace
}  // namespace wherry
