// Images for tests of models that take them.
#ifndef WHERRY_ENGINE_TESTING_FAKE_IMAGES_H_
#define WHERRY_ENGINE_TESTING_FAKE_IMAGES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "sampling/rng.h"
#include "testing/fake_options.h"
#include "wherry.h"

namespace wherry {

constexpr int32_t kFakePlaceholder = 5;

// The images of one prompt. Copies share their pixels, so pointers to them stay valid.
class FakeImages {
 public:
  FakeImages() : FakeImages(FakeOptions().tower) {}
  explicit FakeImages(const TowerSpec& tower) : tower_(tower) {}

  // Appends an image of `rows` tokens to a prompt. Images of one seed and size are equal; the
  // digests of others differ in one byte alone. Returns it, valid until the next call.
  wherry_image& append(std::vector<int32_t>& prompt, int rows, uint8_t seed) {
    images.push_back(image_of(rows, seed));
    wherry_image& image = images.back();
    image.first = prompt.size();
    image.rows = static_cast<size_t>(rows);
    prompt.insert(prompt.end(), image.rows, kFakePlaceholder);
    return image;
  }

  // Appends an image in parts of `rows` tokens each, with a token between.
  void append_parts(std::vector<int32_t>& prompt, int parts, int rows, uint8_t seed,
                    int32_t between) {
    wherry_image image = image_of(parts * rows, seed);
    image.features = static_cast<size_t>(parts * rows);
    image.rows = static_cast<size_t>(rows);
    for (int part = 0; part < parts; ++part) {
      if (part > 0) prompt.push_back(between);
      image.first = prompt.size();
      image.first_feature = static_cast<size_t>(part * rows);
      prompt.insert(prompt.end(), image.rows, kFakePlaceholder);
      images.push_back(image);
    }
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
    std::vector<float> levels, weights;
    std::vector<int32_t> positions, coordinates;
  };

  wherry_image image_of(int features, uint8_t seed) {
    auto pixels = std::make_shared<Pixels>();
    const auto n = static_cast<size_t>(features * tower_.patches_per_row);
    const auto taps = static_cast<size_t>(tower_.taps);
    for (size_t i = 0; i < n * static_cast<size_t>(tower_.patch); ++i) {
      pixels->patches.push_back(static_cast<uint8_t>(splitmix64(seed, i)));
    }
    for (int i = 0; i < 3 * 256; ++i) pixels->levels.push_back(static_cast<float>(i) / 255);
    for (size_t i = 0; i < n * taps; ++i) {
      pixels->positions.push_back(static_cast<int32_t>(i));
      pixels->weights.push_back(static_cast<float>(i % 7) / 8);
    }
    for (size_t i = 0; i < 2 * n; ++i) pixels->coordinates.push_back(static_cast<int32_t>(i / 3));
    wherry_image image{};
    image.digest[31] = seed;
    image.patches = pixels->patches.data();
    image.n_patches = n;
    image.patch_bytes = static_cast<size_t>(tower_.patch);
    image.levels = pixels->levels.data();
    image.taps = taps == 1 ? 0 : taps;
    if (taps > 0) image.positions = pixels->positions.data();
    if (tower_.position_weights) image.position_weights = pixels->weights.data();
    if (tower_.coordinates) image.coordinates = pixels->coordinates.data();
    pixels_.push_back(std::move(pixels));
    return image;
  }

  TowerSpec tower_;
  std::vector<std::shared_ptr<Pixels>> pixels_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_IMAGES_H_
