// Images for tests of models that take them.
#ifndef WHERRY_ENGINE_TESTING_FAKE_IMAGES_H_
#define WHERRY_ENGINE_TESTING_FAKE_IMAGES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "sampling/rng.h"
#include "testing/fake_model.h"
#include "wherry.h"

namespace wherry {

constexpr int32_t kFakePlaceholder = 5;

// The images of one prompt. Copies share their pixels, so pointers to them stay valid.
class FakeImages {
 public:
  // Appends an image of `rows` tokens to a prompt. Images of one seed and size are equal; the
  // digests of others differ in one byte alone.
  void append(std::vector<int32_t>& prompt, int rows, uint8_t seed) {
    auto pixels = std::make_shared<Pixels>();
    const auto n = static_cast<size_t>(rows * kFakeTower.patches_per_row);
    for (size_t i = 0; i < n * static_cast<size_t>(kFakeTower.patch); ++i) {
      pixels->patches.push_back(static_cast<uint8_t>(splitmix64(seed, i)));
    }
    for (int i = 0; i < 3 * 256; ++i) pixels->levels.push_back(static_cast<float>(i) / 255);
    for (size_t i = 0; i < n; ++i) pixels->positions.push_back(static_cast<int32_t>(i));
    wherry_image image{};
    image.first = prompt.size();
    image.rows = static_cast<size_t>(rows);
    image.digest[31] = seed;
    image.patches = pixels->patches.data();
    image.n_patches = n;
    image.patch_bytes = static_cast<size_t>(kFakeTower.patch);
    image.levels = pixels->levels.data();
    image.positions = pixels->positions.data();
    images.push_back(image);
    pixels_.push_back(std::move(pixels));
    prompt.insert(prompt.end(), static_cast<size_t>(rows), kFakePlaceholder);
  }

  // Sets the images of params, which are valid as long as this object does not change.
  void set(wherry_params& params) const {
    params.images = images.data();
    params.n_images = images.size();
  }

  std::vector<wherry_image> images;

 private:
  struct Pixels {
    std::vector<uint8_t> patches;
    std::vector<float> levels;
    std::vector<int32_t> positions;
  };
  std::vector<std::shared_ptr<Pixels>> pixels_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_IMAGES_H_
