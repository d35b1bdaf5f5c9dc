#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "app/image/fitted_size.h"
#include "app/image/patches.h"
#include "app/image/positions.h"
#include "app/image/processors.h"
#include "app/image/settings.h"

namespace wherry::app {
namespace {

constexpr int kLowAreaQwen = 512 * 512;  // of low detail: 256 rows of 32 x 32 pixels
constexpr int kLargestAspect = 200;      // smart_resize's in image_processing_qwen2_vl.py

struct QwenSettings {
  AreaBounds bounds;
  int patch, merge;
  int side;  // of the table of positions
  PixelSettings pixels;
  std::string placeholder;
};

QwenSettings read_qwen_settings(const json::Value& value) {
  SettingsReader reader(value);
  QwenSettings settings;
  settings.pixels = read_pixels(reader, {"Qwen2VLImageProcessor"},
                                {"merge_size", "patch_size", "size", "temporal_patch_size"});
  settings.patch = reader.integer({"processor", "patch_size"}, 1, 256);
  settings.merge = reader.integer({"processor", "merge_size"}, 1, 16);
  reader.expect({"vision_config", "patch_size"}, settings.patch, ", processor.patch_size");
  reader.expect({"vision_config", "spatial_merge_size"}, settings.merge, ", processor.merge_size");
  // A still image is given twice in time; the library has the sum of its weights.
  reader.integer({"processor", "temporal_patch_size"}, 1, 16);
  reader.expect_fields({"processor", "size"}, {"shortest_edge", "longest_edge"});
  AreaBounds& bounds = settings.bounds;
  bounds.factor = settings.patch * settings.merge;
  bounds.smallest_side = 0;
  bounds.largest_area = reader.integer({"processor", "size", "longest_edge"}, 1, kLargestArea);
  bounds.smallest_area =
      reader.integer({"processor", "size", "shortest_edge"}, 1, bounds.largest_area);
  const int positions = reader.integer({"vision_config", "num_position_embeddings"}, 1, 1 << 20);
  settings.side = static_cast<int>(std::sqrt(positions));
  settings.placeholder = reader.text({"image_token"});
  reader.finish();
  return settings;
}

class QwenProcessor : public ImageProcessor {
 public:
  explicit QwenProcessor(QwenSettings settings)
      : ImageProcessor(settings.placeholder), settings_(std::move(settings)) {}

 private:
  PreparedImage compute(const RgbImage& image, Detail detail) const override {
    const auto [shorter, longer] = std::minmax(image.width, image.height);
    if (longer > kLargestAspect * shorter) {
      throw std::invalid_argument(
          "the image has " + std::to_string(image.width) + " x " + std::to_string(image.height) +
          " pixels; its longer side may be " + std::to_string(kLargestAspect) + " times the other");
    }
    AreaBounds bounds = settings_.bounds;
    if (detail == Detail::kLow) {
      bounds.largest_area = std::min(bounds.largest_area, kLowAreaQwen);
      bounds.smallest_area = std::min(bounds.smallest_area, bounds.largest_area);
    }
    const Size size = fitted_size({image.width, image.height}, bounds);
    const PatchGrid grid{settings_.patch, size.height / settings_.patch,
                         size.width / settings_.patch, settings_.merge};
    PreparedImage result;
    result.levels = settings_.pixels.levels;
    Tile& tile = result.tiles.emplace_back(
        cut_tile(resize(image, size.width, size.height, settings_.pixels.filter), grid));
    interpolate_corners(tile, grid, settings_.side);
    tile.grid_rows = grid.rows / grid.block;
    tile.grid_columns = grid.columns / grid.block;
    result.prompt.push_back({"", 0});
    return result;
  }

  const QwenSettings settings_;
};

}  // namespace

std::unique_ptr<ImageProcessor> create_qwen_processor(const json::Value& settings) {
  return std::make_unique<QwenProcessor>(read_qwen_settings(settings));
}

}  // namespace wherry::app
