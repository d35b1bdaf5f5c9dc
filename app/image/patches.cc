#include "app/image/patches.h"

namespace wherry::app {
namespace {

// Returns [n, 2] row and column of each patch, block by block.
std::vector<int32_t> coordinates_of(const PatchGrid& grid) {
  std::vector<int32_t> result;
  result.reserve(size_t{2} * grid.rows * grid.columns);
  for (int top = 0; top < grid.rows; top += grid.block) {
    for (int left = 0; left < grid.columns; left += grid.block) {
      for (int i = 0; i < grid.block * grid.block; ++i) {
        result.push_back(top + i / grid.block);
        result.push_back(left + i % grid.block);
      }
    }
  }
  return result;
}

}  // namespace

Tile cut_tile(const RgbImage& image, const PatchGrid& grid, Corner corner) {
  Tile tile;
  tile.patch_count = int64_t{grid.rows} * grid.columns;
  tile.rows = tile.patch_count / (grid.block * grid.block);
  tile.coordinates = coordinates_of(grid);
  tile.patches.resize(static_cast<size_t>(tile.patch_count) * grid.patch * grid.patch * 3);
  uint8_t* output = tile.patches.data();
  for (size_t i = 0; i < tile.coordinates.size(); i += 2) {
    const size_t top = corner.top + static_cast<size_t>(tile.coordinates[i]) * grid.patch;
    const size_t left = corner.left + static_cast<size_t>(tile.coordinates[i + 1]) * grid.patch;
    for (int channel = 0; channel < 3; ++channel) {
      for (int y = 0; y < grid.patch; ++y) {
        const uint8_t* pixel = &image.pixels[((top + y) * image.width + left) * 3 + channel];
        for (int x = 0; x < grid.patch; ++x) *output++ = pixel[3 * x];
      }
    }
  }
  return tile;
}

}  // namespace wherry::app
