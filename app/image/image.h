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

using Levels = std::array<float, 768>;  // [3, 256] the value of each level of each channel

// A part of an image that the tower encodes by itself.
struct Tile {
  // [patch_count, 3 * patch * patch] levels, by channel, row and column. The patches of a row of
  // features follow each other: square blocks of patches row by row, in each its patches row by
  // row.
  std::vector<uint8_t> patches;
  int64_t patch_count = 0;
  // [patch_count, taps] rows of the tower's table of positions; empty if it has none
  std::vector<int32_t> positions;
  int64_t taps = 1;
  std::vector<float> position_weights;  // [patch_count, taps]; empty: all are 1
  // [patch_count, 2] row and column of each patch in the tile; empty if the tower takes none
  std::vector<int32_t> coordinates;
  int64_t rows = 0;  // rows of image features
  // The rows on the axes of M-RoPE, rows == grid_rows * grid_columns; 0: they advance as text does.
  int64_t grid_rows = 0, grid_columns = 0;
  std::array<uint8_t, 32> digest{};  // hash of all that the tower computes the features from
};

// A part of the text that takes the place of an image's placeholder.
struct PromptPart {
  std::string text;       // "" for rows of a tile
  int tile = -1;          // index in `tiles`, whose rows soft tokens stand for; -1: text
  int64_t first_row = 0;  // of the tile's rows of features
  int64_t rows = 0;       // number of rows, and of tokens; processors may leave 0 for all
};

struct PreparedImage {
  std::vector<Tile> tiles;
  std::vector<PromptPart> prompt;
  Levels levels{};
};

// How closely an image is read: as the model's settings say, or with the fewest rows that are of
// use.
enum class Detail { kFull, kLow };

// What a model does to images before its tower sees them.
class ImageProcessor {
 public:
  // settings: wherry-vision.json. Throws std::invalid_argument that names all fields it cannot use.
  static std::unique_ptr<ImageProcessor> create(const json::Value& settings);

  virtual ~ImageProcessor() = default;
  // Throws std::invalid_argument for an image without pixels, beyond the bounds above, or of an
  // aspect that the model does not take.
  PreparedImage prepare(const RgbImage& image, Detail detail = Detail::kFull) const;
  // The text that a chat template writes for an image, "<image>".
  const std::string& placeholder() const { return placeholder_; }
  // The text of the token that stands for a row of features; most models have one text for both.
  const std::string& soft_token() const { return soft_token_; }

 protected:
  explicit ImageProcessor(const std::string& placeholder)
      : ImageProcessor(placeholder, placeholder) {}
  ImageProcessor(std::string placeholder, std::string soft_token)
      : placeholder_(std::move(placeholder)), soft_token_(std::move(soft_token)) {}

 private:
  // Prepares an image of an accepted size; prepare() computes digests, and rows that are 0.
  virtual PreparedImage compute(const RgbImage& image, Detail detail) const = 0;

  std::string placeholder_, soft_token_;
};

// Throws std::invalid_argument if an image of this size has no pixels or exceeds the bounds above.
void check_image_size(int64_t width, int64_t height);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_IMAGE_H_
