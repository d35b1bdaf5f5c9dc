#include "app/image/tile_processor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "app/image/resize.h"
#include "app/image/tile_settings.h"
#include "support/blake2b.h"

namespace wherry::app {
namespace {

// The texts that Idefics3Processor and SmolVLMProcessor write around placeholders.
constexpr const char* kAround = "<fake_token_around_image>";
constexpr const char* kGlobal = "<global-img>";

struct Size {
  int width, height;
};

// Returns the size with the longest edge of the settings and, but for rounding, the image's aspect.
// The operations are transformers' in double precision, since their rounding decides a pixel.
Size first_size(const RgbImage& image, int longest_edge) {
  const double aspect = static_cast<double>(image.width) / image.height;
  Size size{longest_edge, longest_edge};
  int& shorter = image.width >= image.height ? size.height : size.width;
  shorter =
      static_cast<int>(image.width >= image.height ? longest_edge / aspect : longest_edge * aspect);
  shorter += shorter % 2;
  shorter = std::max(shorter, 1);
  return size;
}

int multiple_from(int pixels, int tile) { return (pixels + tile - 1) / tile * tile; }

// Returns the size in complete tiles, where the longer edge grows to a multiple first.
Size tiled_size(Size size, int tile) {
  const double aspect = static_cast<double>(size.width) / size.height;
  if (size.width >= size.height) {
    const int width = multiple_from(size.width, tile);
    return {width, multiple_from(static_cast<int>(width / aspect), tile)};
  }
  const int height = multiple_from(size.height, tile);
  return {multiple_from(static_cast<int>(height * aspect), tile), height};
}

class TileProcessor : public ImageProcessor {
 public:
  explicit TileProcessor(TileSettings settings)
      : ImageProcessor(settings.placeholder), settings_(std::move(settings)) {}

  PreparedImage prepare(const RgbImage& image) const override {
    check_image_size(image.width, image.height);
    if (image.pixels.size() != static_cast<size_t>(image.width) * image.height * 3) {
      throw std::invalid_argument("the image has " + std::to_string(image.pixels.size()) +
                                  " bytes, not 3 for each of its pixels");
    }
    const int tile = settings_.tile;
    const Size size = first_size(image, settings_.longest_edge);
    RgbImage canvas = resize(image, size.width, size.height, settings_.filter);
    PreparedImage result;
    result.levels = settings_.levels;
    std::string text = kAround;
    if (settings_.split) {
      const Size tiled = tiled_size(size, tile);
      canvas = resize(canvas, tiled.width, tiled.height, settings_.filter);
      if (tiled.width > tile || tiled.height > tile) text = add_tiles(result, canvas);
    }
    text += kGlobal;
    add_tile(result, resize(canvas, tile, tile, settings_.filter), {0, 0}, std::move(text));
    result.prompt.push_back({kAround, -1});
    return result;
  }

 private:
  // Adds the tiles of a canvas row by row. Returns the text before the global image's tag.
  std::string add_tiles(PreparedImage& result, const RgbImage& canvas) const {
    std::string text;
    for (int row = 0; row < canvas.height / settings_.tile; ++row) {
      for (int column = 0; column < canvas.width / settings_.tile; ++column) {
        text += kAround + ("<row_" + std::to_string(row + 1)) + "_col_" +
                std::to_string(column + 1) + ">";
        add_tile(result, canvas, {column * settings_.tile, row * settings_.tile},
                 std::exchange(text, ""));
      }
      text += "\n";
    }
    return text + "\n" + kAround;
  }

  // Adds the tile of a canvas whose upper left corner is `corner`, after a text.
  void add_tile(PreparedImage& result, const RgbImage& canvas, Size corner,
                std::string text) const {
    result.prompt.push_back({std::move(text), -1});
    result.prompt.push_back({"", static_cast<int>(result.tiles.size())});
    Tile& tile = result.tiles.emplace_back();
    const int side = settings_.side, scale = settings_.scale, blocks = side / scale;
    tile.patch_count = static_cast<int64_t>(side) * side;
    tile.rows = static_cast<int64_t>(blocks) * blocks;
    tile.positions.reserve(tile.patch_count);
    for (int block = 0; block < blocks * blocks; ++block) {
      for (int i = 0; i < scale * scale; ++i) {
        const int row = block / blocks * scale + i / scale;
        const int column = block % blocks * scale + i % scale;
        // transformers computes it by fractions of the tile. Of a complete tile it is the patch's
        // own place, but for the rounding of fractions in grids that no checkpoint has.
        tile.positions.push_back(row * side + column);
      }
    }
    tile.patches = patches_of(canvas, corner, tile.positions);
    tile.digest = digest_of(tile);
  }

  // Returns the patches at places of the tile, which are counted row by row.
  std::vector<uint8_t> patches_of(const RgbImage& canvas, Size corner,
                                  const std::vector<int32_t>& places) const {
    const int patch = settings_.patch, side = settings_.side;
    std::vector<uint8_t> result(places.size() * patch * patch * 3);
    uint8_t* output = result.data();
    for (const int32_t place : places) {
      const size_t left = corner.width + static_cast<size_t>(place % side) * patch;
      const size_t top = corner.height + static_cast<size_t>(place / side) * patch;
      for (int channel = 0; channel < 3; ++channel) {
        for (int y = 0; y < patch; ++y) {
          const uint8_t* pixel = &canvas.pixels[((top + y) * canvas.width + left) * 3 + channel];
          for (int x = 0; x < patch; ++x) *output++ = pixel[3 * x];
        }
      }
    }
    return result;
  }

  // Hashes all that the tower gets for a tile: equal digests are equal features.
  Blake2b::Digest digest_of(const Tile& tile) const {
    Blake2b hash;
    hash.text("wherry image tile 1").number(settings_.patch).number(tile.rows);
    hash.bytes(settings_.levels.data(), sizeof settings_.levels);
    hash.number(tile.positions.size());
    hash.bytes(tile.positions.data(), tile.positions.size() * sizeof(int32_t));
    hash.number(tile.patches.size());
    return hash.bytes(tile.patches.data(), tile.patches.size()).finish();
  }

  const TileSettings settings_;
};

}  // namespace

std::unique_ptr<ImageProcessor> create_tile_processor(const json::Value& settings) {
  return std::make_unique<TileProcessor>(read_tile_settings(settings));
}

}  // namespace wherry::app
