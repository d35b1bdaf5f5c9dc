#include "testing/fake_rows.h"

#include <algorithm>
#include <cmath>

#include "sampling/rng.h"
#include "testing/testing.h"

namespace wherry {

namespace {

// Returns a negative number.
int32_t negative(uint64_t bits) { return -1 - static_cast<int32_t>(bits % (1u << 30)); }

ImageTile tile_of(const wherry_image& image, const TowerSpec& tower) {
  ImageTile tile;
  const size_t n = image.n_patches, taps = static_cast<size_t>(tower.taps);
  tile.n = static_cast<int64_t>(n);
  tile.patches.assign(image.patches, image.patches + n * image.patch_bytes);
  tile.levels.assign(image.levels, image.levels + 3 * 256);
  if (taps > 0) tile.positions.assign(image.positions, image.positions + n * taps);
  if (tower.position_weights) {
    tile.position_weights.assign(image.position_weights, image.position_weights + n * taps);
  }
  if (tower.coordinates) tile.coordinates.assign(image.coordinates, image.coordinates + 2 * n);
  return tile;
}

// Moves the rows of a text with images to their places, as transformers' get_rope_index does.
void place(std::vector<int32_t>& kept, const wherry_params& params) {
  int32_t at = 0;
  size_t next = 0;
  for (size_t i = 0; i < kept.size();) {
    const wherry_image* image = next < params.n_images ? &params.images[next] : nullptr;
    if (image == nullptr || image->first != i || image->grid_rows == 0) {
      if (image != nullptr && image->first == i) ++next;
      const int32_t places[] = {at, at, at};
      kept[i] = fake_placed(kept[i], places, static_cast<int32_t>(i));
      ++at;
      ++i;
      continue;
    }
    for (size_t row = 0; row < image->grid_rows; ++row) {
      for (size_t column = 0; column < image->grid_columns; ++column, ++i) {
        const int32_t places[] = {at, at + static_cast<int32_t>(row),
                                  at + static_cast<int32_t>(column)};
        kept[i] = fake_placed(kept[i], places, static_cast<int32_t>(i));
      }
    }
    at += static_cast<int32_t>(std::max(image->grid_rows, image->grid_columns));
    ++next;
  }
}

}  // namespace

std::vector<int32_t> fake_features(const FakeOptions& options, const ImageTile& tile) {
  const TowerSpec& tower = options.tower;
  const auto n = static_cast<size_t>(tile.n), patch = static_cast<size_t>(tower.patch);
  const auto taps = static_cast<size_t>(tower.taps);
  CHECK_EQ(tile.patches.size(), n * patch);
  CHECK_EQ(tile.levels.size(), size_t{3 * 256});
  CHECK_EQ(tile.positions.size(), n * taps);
  CHECK_EQ(tile.position_weights.size(), tower.position_weights ? n * taps : 0);
  CHECK_EQ(tile.coordinates.size(), tower.coordinates ? 2 * n : 0);
  uint64_t view = n;
  auto add = [&](int64_t value) { view = splitmix64(view, static_cast<uint64_t>(value)); };
  auto add_real = [&](float value) { add(std::lround(1000 * value)); };
  for (int32_t position : tile.positions) add(position);
  for (float weight : tile.position_weights) add_real(weight);
  for (int32_t coordinate : tile.coordinates) add(coordinate);
  for (size_t i = 0; i < n * patch; ++i) {
    const size_t channel = i % patch / (patch / 3);
    add_real(tile.levels[channel * 256 + tile.patches[i]]);
  }
  std::vector<int32_t> features;
  for (int64_t row = 0; row < tile.n / tower.patches_per_row; ++row) {
    features.push_back(negative(splitmix64(view, static_cast<uint64_t>(row))));
  }
  return features;
}

int32_t fake_placed(int32_t token, const int32_t* place, int32_t position) {
  if (place[0] == position && place[1] == position && place[2] == position) return token;
  uint64_t view = static_cast<uint32_t>(token);
  for (int axis = 0; axis < 3; ++axis) view = splitmix64(view, static_cast<uint64_t>(place[axis]));
  return negative(view);
}

int32_t fake_attending(const int32_t* kept, int64_t n) {
  if (n == 1) return kept[0];
  uint64_t view = static_cast<uint64_t>(n);
  for (int64_t i = 0; i < n; ++i) view = splitmix64(view, static_cast<uint32_t>(kept[i]));
  return negative(view);
}

std::vector<int32_t> with_fake_features(const FakeOptions& options,
                                        const std::vector<int32_t>& prompt,
                                        const wherry_params& params) {
  std::vector<int32_t> kept = prompt;
  for (size_t i = 0; i < params.n_images; ++i) {
    const wherry_image& image = params.images[i];
    const std::vector<int32_t> rows = fake_features(options, tile_of(image, options.tower));
    CHECK_EQ(rows.size(), image.features == 0 ? image.rows : image.features);
    std::copy_n(rows.begin() + static_cast<int64_t>(image.first_feature), image.rows,
                kept.begin() + static_cast<int64_t>(image.first));
  }
  if (options.rope_positions) place(kept, params);
  for (size_t i = 0; options.last_visible && i < params.n_images; ++i) {
    const wherry_image& image = params.images[i];
    for (size_t row = 0; row < image.rows; ++row) {
      int32_t& first = kept[image.first + row];
      first = fake_attending(&first, static_cast<int64_t>(image.rows - row));
    }
  }
  return kept;
}

}  // namespace wherry
