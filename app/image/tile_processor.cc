#include <algorithm>
#include <utility>

#include "app/image/fitted_size.h"
#include "app/image/patches.h"
#include "app/image/positions.h"
#include "app/image/processors.h"
#include "app/image/resize.h"
#include "app/image/settings.h"

namespace wherry::app {
namespace {

// The texts that Idefics3Processor and SmolVLMProcessor write around placeholders.
constexpr const char* kAround = "<fake_token_around_image>";
constexpr const char* kGlobal = "<global-img>";

// transformers bounds images by 4096 (MAX_IMAGE_SIZE in image_processing_smolvlm.py).
constexpr int kTiledEdge = 4096;
constexpr int kTilesPerSide = 32;  // a prompt of 1024 tiles; published checkpoints have 4 or 5

struct TileSettings {
  int longest_edge;  // pixels to which an image is resized first
  int tile;          // pixels of a tile's side
  PatchGrid grid;    // of a tile
  bool split;        // whether an image becomes several tiles
  PixelSettings pixels;
  std::string placeholder;
};

// Reads {"longest_edge": n}, the one form of a size that these processors have in checkpoints.
int read_edge(SettingsReader& reader, const char* name, int maximum) {
  reader.expect_fields({"processor", name}, {"longest_edge"});
  return reader.integer({"processor", name, "longest_edge"}, 1, maximum);
}

// Reads the tower's grid of patches, and checks that a tile fills it.
PatchGrid read_grid(SettingsReader& reader, int tile) {
  const int image = reader.integer({"vision_config", "image_size"}, 1, kTiledEdge);
  const int patch = reader.integer({"vision_config", "patch_size"}, 1, image);
  // As a convolution does without padding, pixels beyond the last complete patch are left out.
  const int side = tile / patch;
  if (side != image / patch) {
    reader.refuse({"processor", "max_image_size", "longest_edge"},
                  "as many patches of " + std::to_string(patch) +
                      " pixels as vision_config.image_size " + std::to_string(image) + " has");
  }
  const int scale = reader.integer({"scale_factor"}, 1, std::max(side, 1));
  if (side % scale != 0) {
    reader.refuse({"scale_factor"}, "a divisor of " + std::to_string(side) + " patches");
  }
  const int blocks = side / scale;
  reader.expect({"image_seq_len"}, blocks * blocks, ", of image_size, patch_size and scale_factor");
  return {patch, side, side, scale};
}

TileSettings read_tile_settings(const json::Value& value) {
  SettingsReader reader(value);
  TileSettings settings;
  settings.pixels = read_pixels(reader, {"Idefics3ImageProcessor", "SmolVLMImageProcessor"},
                                {"do_image_splitting", "max_image_size", "size"});
  settings.tile = read_edge(reader, "max_image_size", kTiledEdge);
  settings.longest_edge =
      read_edge(reader, "size", std::min(kTiledEdge, kTilesPerSide * settings.tile));
  settings.split = reader.boolean({"processor", "do_image_splitting"});
  settings.grid = read_grid(reader, settings.tile);
  settings.placeholder = reader.text({"image_token"});
  reader.finish();
  return settings;
}

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

 private:
  PreparedImage compute(const RgbImage& image, Detail detail) const override {
    const int tile = settings_.tile;
    const Size size = first_size(image, settings_.longest_edge);
    RgbImage canvas = resize(image, size.width, size.height, settings_.pixels.filter);
    PreparedImage result;
    result.levels = settings_.pixels.levels;
    std::string text = kAround;
    if (settings_.split && detail == Detail::kFull) {
      const Size tiled = tiled_size(size, tile);
      canvas = resize(canvas, tiled.width, tiled.height, settings_.pixels.filter);
      if (tiled.width > tile || tiled.height > tile) text = add_tiles(result, canvas);
    }
    text += kGlobal;
    add_tile(result, resize(canvas, tile, tile, settings_.pixels.filter), {}, std::move(text));
    result.prompt.push_back({kAround});
    return result;
  }

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
  void add_tile(PreparedImage& result, const RgbImage& canvas, Corner corner,
                std::string text) const {
    result.prompt.push_back({std::move(text)});
    result.prompt.push_back({"", static_cast<int>(result.tiles.size())});
    Tile& tile = result.tiles.emplace_back(cut_tile(canvas, settings_.grid, corner));
    // transformers computes positions by fractions of the tile. Of a complete tile they are the
    // patches' own places, but for the rounding of fractions in grids that no checkpoint has.
    use_places(tile, settings_.grid);
    tile.coordinates.clear();  // the tower takes none
  }

  const TileSettings settings_;
};

}  // namespace

std::unique_ptr<ImageProcessor> create_tile_processor(const json::Value& settings) {
  return std::make_unique<TileProcessor>(read_tile_settings(settings));
}

}  // namespace wherry::app
