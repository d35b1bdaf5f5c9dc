#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "app/image/fitted_size.h"
#include "app/image/patches.h"
#include "app/image/positions.h"
#include "app/image/processors.h"
#include "app/image/settings.h"

namespace wherry::app {
namespace {

constexpr int kMaximumTilesLfm = 64;  // published checkpoints have 10

struct LfmSettings {
  bool split, thumbnail, special_tokens;
  int minimum_tiles, maximum_tiles;
  double largest_area;  // pixels of an image that is not split
  int tile;             // pixels of a tile's side
  int patch, block;
  AreaBounds bounds;  // of an image that is not split, and of the thumbnail
  int maximum_area;   // pixels of each of them where the bounds do not hold
  int side;           // of the table of positions
  int64_t taps;
  PixelSettings pixels;
  std::string placeholder;
};

void read_lfm_sizes(SettingsReader& reader, LfmSettings& settings) {
  settings.split = reader.boolean({"processor", "do_image_splitting"});
  settings.thumbnail = reader.boolean({"processor", "use_thumbnail"});
  settings.patch = reader.integer({"processor", "encoder_patch_size"}, 1, 256);
  settings.block = reader.integer({"processor", "downsample_factor"}, 1, 16);
  const int factor = settings.patch * settings.block;
  settings.tile = reader.integer({"processor", "tile_size"}, factor, 4096);
  if (settings.tile % factor != 0) {
    reader.refuse({"processor", "tile_size"}, "a multiple of " + std::to_string(factor) +
                                                  ", of encoder_patch_size and downsample_factor");
  }
  const int tiles = std::min(kMaximumTilesLfm, kLargestArea / (settings.tile * settings.tile));
  settings.minimum_tiles = reader.integer({"processor", "min_tiles"}, 1, tiles);
  settings.maximum_tiles =
      reader.integer({"processor", "max_tiles"}, settings.minimum_tiles, tiles);
  const int area = factor * factor;  // of a row of features
  const int maximum_tokens =
      reader.integer({"processor", "max_image_tokens"}, 1, kLargestArea / area);
  const int minimum_tokens = reader.integer({"processor", "min_image_tokens"}, 1, maximum_tokens);
  settings.bounds = {factor, factor, minimum_tokens * area, maximum_tokens * area};
  settings.maximum_area = settings.bounds.largest_area;
  if (settings.split)
    settings.maximum_area = std::max(settings.maximum_area, settings.tile * settings.tile);
  if (settings.maximum_tiles == 1) settings.split = false;
  settings.largest_area =
      settings.bounds.largest_area * reader.number({"processor", "max_pixels_tolerance"});
}

// Returns a lower bound of the blocks of a tile. An image has at least the smallest area, or a
// quarter of the largest, where its sides were rounded down to it.
int64_t minimum_blocks(const LfmSettings& settings) {
  const AreaBounds& bounds = settings.bounds;
  int area = std::min(bounds.smallest_area, bounds.largest_area / 4);
  if (settings.split) area = std::min(area, settings.tile * settings.tile);
  return std::max(1, area / (bounds.factor * bounds.factor));
}

LfmSettings read_lfm_settings(const json::Value& value) {
  SettingsReader reader(value);
  LfmSettings settings;
  settings.pixels = read_pixels(
      reader, {"Lfm2VlImageProcessor"},
      {"do_image_splitting", "downsample_factor", "encoder_patch_size", "max_image_tokens",
       "max_num_patches", "max_pixels_tolerance", "max_tiles", "min_image_tokens", "min_tiles",
       "size", "tile_size", "use_thumbnail"});  // of them, max_num_patches and size change nothing
  read_lfm_sizes(reader, settings);
  reader.expect({"vision_config", "patch_size"}, settings.patch, ", processor.encoder_patch_size");
  const int positions = reader.integer({"vision_config", "num_patches"}, 1, 1 << 16);
  settings.side = static_cast<int>(std::sqrt(positions));
  if (settings.side * settings.side != positions) {
    reader.refuse({"vision_config", "num_patches"}, "a square number");
  }
  const auto taps =
      static_cast<int>(maximum_taps(settings.side, settings.block, minimum_blocks(settings)));
  settings.taps = reader.integer({"position_taps"}, taps, std::max(taps, 1024));
  settings.special_tokens = reader.find({"use_image_special_tokens"}) == nullptr ||
                            reader.boolean({"use_image_special_tokens"});
  settings.placeholder = reader.text({"image_token"});
  reader.finish();
  return settings;
}

class LfmProcessor : public ImageProcessor {
 public:
  explicit LfmProcessor(LfmSettings settings)
      : ImageProcessor(settings.placeholder), settings_(std::move(settings)) {}

 private:
  PreparedImage compute(const RgbImage& image, Detail detail) const override {
    PreparedImage result;
    result.levels = settings_.pixels.levels;
    const Size size = fitted_size({image.width, image.height}, settings_.bounds);
    add_special(result, "<|image_start|>");
    if (settings_.split && detail == Detail::kFull && is_large(image)) {
      const Size grid = grid_of(image);
      add_tiles(result, image, grid);
      if (settings_.thumbnail && grid.width * grid.height > 1) {
        add_special(result, "<|img_thumbnail|>");
        add_complete(result, image, size);
      }
    } else {
      add_complete(result, image, size);
    }
    add_special(result, "<|image_end|>");
    return result;
  }

  bool is_large(const RgbImage& image) const {
    const auto nearest = [&](int side) {
      return int64_t{std::max(settings_.patch, nearest_multiple(side, settings_.bounds.factor))};
    };
    return static_cast<double>(nearest(image.width) * nearest(image.height)) >
           settings_.largest_area;
  }

  // Returns the numbers of tiles whose aspect is nearest to the image's. Of equally near ones,
  // which are multiples of each other, the image's area decides.
  Size grid_of(const RgbImage& image) const {
    const double aspect = static_cast<double>(image.width) / image.height;
    const auto area = static_cast<double>(int64_t{image.width} * image.height);
    const double tile_area = static_cast<double>(settings_.tile) * settings_.tile;
    double smallest = std::numeric_limits<double>::infinity();
    Size best{1, 1};
    for (int count = settings_.minimum_tiles; count <= settings_.maximum_tiles; ++count) {
      for (int width = 1; width <= count; ++width) {
        if (count % width != 0) continue;
        const Size grid{width, count / width};
        const double difference = std::abs(aspect - static_cast<double>(width) / grid.height);
        if (difference < smallest || (difference == smallest && area > 0.5 * (tile_area * count))) {
          best = grid;
        }
        smallest = std::min(smallest, difference);
      }
    }
    return best;
  }

  void add_tiles(PreparedImage& result, const RgbImage& image, Size grid) const {
    const int side = settings_.tile;
    const RgbImage canvas = resized(image, {grid.width * side, grid.height * side});
    const bool several = grid.width * grid.height > 1;
    for (int row = 0; row < grid.height; ++row) {
      for (int column = 0; column < grid.width; ++column) {
        if (several) {
          add_special(result, "<|img_row_" + std::to_string(row + 1) + "_col_" +
                                  std::to_string(column + 1) + "|>");
        }
        add_tile(result, canvas, {side, side}, {column * side, row * side});
      }
    }
  }

  // Adds an image, or its thumbnail. Thin ones may exceed the largest area, and in transformers
  // what Lfm2VlImageProcessor has room for.
  void add_complete(PreparedImage& result, const RgbImage& image, Size size) const {
    if (int64_t{size.width} * size.height > settings_.maximum_area) {
      throw std::invalid_argument(
          "the image has " + std::to_string(image.width) + " x " + std::to_string(image.height) +
          " pixels, which is too thin: it would be resized to " + std::to_string(size.width) +
          " x " + std::to_string(size.height) + ", and the model takes " +
          std::to_string(settings_.maximum_area) + " pixels");
    }
    add_tile(result, resized(image, size), size);
  }

  RgbImage resized(const RgbImage& image, Size size) const {
    return resize(image, size.width, size.height, settings_.pixels.filter);
  }

  void add_special(PreparedImage& result, std::string text) const {
    if (settings_.special_tokens) result.prompt.push_back({std::move(text)});
  }

  void add_tile(PreparedImage& result, const RgbImage& canvas, Size size,
                Corner corner = {}) const {
    const int patch = settings_.patch;
    const PatchGrid grid{patch, size.height / patch, size.width / patch, settings_.block};
    result.prompt.push_back({"", static_cast<int>(result.tiles.size())});
    Tile& tile = result.tiles.emplace_back(cut_tile(canvas, grid, corner));
    interpolate_antialias(tile, grid, settings_.side, settings_.taps);
    tile.coordinates.clear();  // the tower takes none
  }

  const LfmSettings settings_;
};

}  // namespace

std::unique_ptr<ImageProcessor> create_lfm_processor(const json::Value& settings) {
  return std::make_unique<LfmProcessor>(read_lfm_settings(settings));
}

}  // namespace wherry::app
