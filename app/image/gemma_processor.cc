#include <cmath>
#include <utility>

#include "app/image/patches.h"
#include "app/image/positions.h"
#include "app/image/processors.h"
#include "app/image/settings.h"

namespace wherry::app {
namespace {

constexpr int kLargestSideGemma = 4096;  // published checkpoints have 896

struct GemmaSettings {
  int side;  // pixels
  PatchGrid grid;
  PixelSettings pixels;
  std::string begin, token, end;
};

// Reads the tower's grid, whose blocks are pooled to `mm_tokens_per_image` rows.
PatchGrid read_pooled_grid(SettingsReader& reader, int side) {
  const int patch = reader.integer({"vision_config", "patch_size"}, 1, side);
  // As a convolution does without padding, pixels beyond the last complete patch are left out.
  const int patches = side / patch;
  const int tokens = reader.integer({"mm_tokens_per_image"}, 1, patches * patches);
  const int blocks = static_cast<int>(std::sqrt(tokens));
  if (blocks * blocks != tokens || patches % blocks != 0) {
    reader.refuse({"mm_tokens_per_image"},
                  "the square of a divisor of " + std::to_string(patches) + " patches");
  }
  return {patch, patches, patches, patches / blocks};
}

GemmaSettings read_gemma_settings(const json::Value& value) {
  SettingsReader reader(value);
  GemmaSettings settings;
  settings.pixels =
      read_pixels(reader, {"Gemma3ImageProcessor"},
                  {"do_pan_and_scan", "image_seq_length", "pan_and_scan_max_num_crops",
                   "pan_and_scan_min_crop_size", "pan_and_scan_min_ratio_to_activate", "size"});
  if (reader.find({"processor", "do_pan_and_scan"}) != nullptr &&
      reader.boolean({"processor", "do_pan_and_scan"})) {
    reader.refuse({"processor", "do_pan_and_scan"}, "false: an image is one tile");
  }
  settings.side = reader.integer({"vision_config", "image_size"}, 1, kLargestSideGemma);
  reader.expect_fields({"processor", "size"}, {"height", "width"});
  for (const char* edge : {"height", "width"}) {
    reader.expect({"processor", "size", edge}, settings.side, ", vision_config.image_size");
  }
  settings.grid = read_pooled_grid(reader, settings.side);
  settings.begin = reader.text({"boi_token"});
  settings.token = reader.text({"image_token"});
  settings.end = reader.text({"eoi_token"});
  reader.finish();
  return settings;
}

class GemmaProcessor : public ImageProcessor {
 public:
  explicit GemmaProcessor(GemmaSettings settings)
      : ImageProcessor(settings.begin, settings.token), settings_(std::move(settings)) {}

 private:
  PreparedImage compute(const RgbImage& image, Detail) const override {
    PreparedImage result;
    result.levels = settings_.pixels.levels;
    Tile& tile = result.tiles.emplace_back(cut_tile(
        resize(image, settings_.side, settings_.side, settings_.pixels.filter), settings_.grid));
    use_places(tile, settings_.grid);
    tile.coordinates.clear();  // the tower takes none
    // The text of Gemma3Processor.
    result.prompt = {{"\n\n" + settings_.begin}, {"", 0}, {settings_.end + "\n\n"}};
    return result;
  }

  const GemmaSettings settings_;
};

}  // namespace

std::unique_ptr<ImageProcessor> create_gemma_processor(const json::Value& settings) {
  return std::make_unique<GemmaProcessor>(read_gemma_settings(settings));
}

}  // namespace wherry::app
