#include <algorithm>
#include <cmath>
#include <utility>

#include "app/image/fitted_size.h"
#include "app/image/patches.h"
#include "app/image/processors.h"
#include "app/image/settings.h"

namespace wherry::app {
namespace {

constexpr int kLongestEdgePixtral = 4096;  // published checkpoints have 1024 and 1540
constexpr int kLowEdgePixtral = 512;       // of low detail

struct PixtralSettings {
  int longest_edge;
  int patch, merge;
  PixelSettings pixels;
  std::string token, break_token, end_token;
};

PixtralSettings read_pixtral_settings(const json::Value& value) {
  SettingsReader reader(value);
  PixtralSettings settings;
  settings.pixels = read_pixels(reader, {"PixtralImageProcessor"}, {"patch_size", "size"});
  reader.expect_fields({"processor", "size"}, {"longest_edge"});
  settings.longest_edge =
      reader.integer({"processor", "size", "longest_edge"}, 1, kLongestEdgePixtral);
  reader.expect_fields({"processor", "patch_size"}, {"height", "width"});
  settings.patch = reader.integer({"processor", "patch_size", "height"}, 1, 256);
  reader.expect({"processor", "patch_size", "width"}, settings.patch, ", as its height");
  settings.merge = reader.integer({"spatial_merge_size"}, 1, 16);
  settings.token = reader.text({"image_token"});
  settings.break_token = reader.text({"image_break_token"});
  settings.end_token = reader.text({"image_end_token"});
  reader.finish();
  return settings;
}

// Returns transformers' get_resize_output_image_size: no edge is longer than the longest, and both
// are rounded up to complete rows of features; a thin image has one at least.
Size pixtral_size(const RgbImage& image, int longest_edge, int factor) {
  const double longest = longest_edge;
  const double ratio = std::max({1.0, image.height / longest, image.width / longest});
  const auto rounded = [&](int side) {
    const int bounded = std::max(1, static_cast<int>(std::floor(side / ratio)));
    return (bounded + factor - 1) / factor * factor;
  };
  return {rounded(image.width), rounded(image.height)};
}

class PixtralProcessor : public ImageProcessor {
 public:
  explicit PixtralProcessor(PixtralSettings settings)
      : ImageProcessor(settings.token), settings_(std::move(settings)) {}

 private:
  PreparedImage compute(const RgbImage& image, Detail detail) const override {
    const int patch = settings_.patch, merge = settings_.merge;
    const int longest_edge = detail == Detail::kLow
                                 ? std::min(settings_.longest_edge, kLowEdgePixtral)
                                 : settings_.longest_edge;
    const Size size = pixtral_size(image, longest_edge, patch * merge);
    const PatchGrid grid{patch, size.height / patch, size.width / patch, merge};
    PreparedImage result;
    result.levels = settings_.pixels.levels;
    result.tiles.push_back(
        cut_tile(resize(image, size.width, size.height, settings_.pixels.filter), grid));
    const int lines = grid.rows / merge, columns = grid.columns / merge;
    for (int line = 0; line < lines; ++line) {
      result.prompt.push_back({"", 0, int64_t{line} * columns, columns});
      result.prompt.push_back({line + 1 < lines ? settings_.break_token : settings_.end_token});
    }
    return result;
  }

  const PixtralSettings settings_;
};

}  // namespace

std::unique_ptr<ImageProcessor> create_pixtral_processor(const json::Value& settings) {
  return std::make_unique<PixtralProcessor>(read_pixtral_settings(settings));
}

}  // namespace wherry::app
