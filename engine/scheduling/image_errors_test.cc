// Tests which images an engine refuses, and how it names them.
#include <cmath>

#include "testing/image_bench.h"
#include "testing/testing.h"

namespace wherry {
namespace {

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
      {[](Prompt& p) { p.images.images[0].positions = nullptr; },
       "images[0]: positions is null; the tower takes it"},
      {[](Prompt& p) { p.images.images[0].taps = 4; },
       "images[0] has 4 positions for a patch (taps); the tower takes 1"},
      {[](Prompt& p) { p.images.images[0].position_weights = p.images.images[0].levels; },
       "images[0]: position_weights are given; the tower takes none"},
      {[](Prompt& p) { p.images.images[0].coordinates = p.images.images[0].positions; },
       "images[0]: coordinates are given; the tower takes none"},
      {[](Prompt& p) { p.images.images[0].first_feature = 1; },
       "images[0] shows the rows 1 to 9 of a tile that has 8"},
      {[](Prompt& p) { p.images.images[0].first_feature = SIZE_MAX; }, "of a tile that has 8"},
      {[](Prompt& p) { p.images.images[0].features = 7; }, "images[0] has 7 rows and 16 patches"},
      {[](Prompt& p) { p.images.images[0].grid_rows = 2; },
       "images[0] has 8 rows, and a grid of 2 x 0"},
      {[](Prompt& p) {
         p.images.images[0].grid_rows = 3;
         p.images.images[0].grid_columns = 2;
       },
       "images[0] has 8 rows, and a grid of 3 x 2"},
      {[](Prompt& p) { p.images.images[2].levels = nullptr; },
       "images[2]: patches or levels is null"},
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

TEST(wrong_arrays_of_a_tower_are_named) {
  FakeOptions options = seeing();
  options.tower = {12, 2, 2, true, true};
  Bench bench("{}", options);
  const auto refusal = [&](void (*change)(wherry_image&)) {
    Prompt prompt;
    prompt.images = FakeImages(options.tower);
    prompt.text(1, 1).image(1).text(1, 2);
    change(prompt.images.images[0]);
    return ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt));
  };
  static const std::vector<float> infinite(32, INFINITY);
  static const std::vector<int32_t> negative(32, -7);
  CHECK_CONTAINS(refusal([](wherry_image& image) { image.taps = 0; }),
                 "images[0] has 1 positions for a patch (taps); the tower takes 2");
  CHECK_CONTAINS(refusal([](wherry_image& image) { image.position_weights = nullptr; }),
                 "images[0]: position_weights is null; the tower takes it");
  CHECK_CONTAINS(refusal([](wherry_image& image) { image.position_weights = infinite.data(); }),
                 "images[0] has position_weights that are not finite");
  CHECK_CONTAINS(refusal([](wherry_image& image) { image.coordinates = nullptr; }),
                 "images[0]: coordinates is null; the tower takes it");
  CHECK_CONTAINS(refusal([](wherry_image& image) { image.coordinates = negative.data(); }),
                 "images[0] has the coordinate -7; accepted is >= 0");
}

}  // namespace
}  // namespace wherry
