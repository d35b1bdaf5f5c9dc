// Images as the vision tower of a model takes them: tiles of pixels, cut into patches, and the text
// that stands for them in a prompt.
#ifndef WHERRY_APP_IMAGE_IMAGE_H_
#define WHERRY_APP_IMAGE_IMAGE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/value/value.h"

namespace wherry::app {

// Upper bounds of what prepare() accepts. Hosts check them before they decode a file.
constexpr int64_t kMaximumImagePixels = 178'956'970;  // where Pillow refuses to decode
constexpr int kMaximumImageSide = 65'535;             // JPEG's maximum; weights of one pixel are 6x

struct RgbImage {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
};

// A part of an image that the tower encodes by itself.
struct Tile {
  // [patch_count, 3 * patch * patch] levels, by channel, row and column. The patches of a row of
  // features follow each other: square blocks of patches row by row, in each its patches row by
  // row.
  std::vector<uint8_t> patches;
  int64_t patch_count = 0;
  std::vector<int32_t> positions;    // [patch_count] rows of the tower's table of positions
  std::array<uint8_t, 32> digest{};  // hash of all that the tower computes the features from
  int64_t rows = 0;                  // rows of image features, and tokens of the span
};

// A part of the text that takes the place of an image's placeholder.
struct PromptPart {
  std::string text;  // "" for a tile
  int tile = -1;     // index in `tiles`, which stands for `rows` placeholder tokens; -1: text
};

struct PreparedImage {
  std::vector<Tile> tiles;
  std::vector<PromptPart> prompt;
  std::array<float, 768> levels{};  // [3, 256] the value of each level of each channel
};

// What a model does to images before its tower sees them.
class ImageProcessor {
 public:
  // settings: wherry-vision.json. Throws std::invalid_argument that names all fields it cannot use.
  static std::unique_ptr<ImageProcessor> create(const json::Value& settings);

  virtual ~ImageProcessor() = default;
  // Throws std::invalid_argument for an image without pixels or beyond the bounds above.
  virtual PreparedImage prepare(const RgbImage& image) const = 0;
  // The text that a chat template writes for an image, and of each placeholder token, "<image>".
  const std::string& placeholder() const { return placeholder_; }

 protected:
  explicit ImageProcessor(std::string placeholder) : placeholder_(std::move(placeholder)) {}

 private:
  std::string placeholder_;
};

// Throws std::invalid_argument if an image of this size has no pixels or exceeds the bounds above.
void check_image_size(int64_t width, int64_t height);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_IMAGE_H_
