// In libwherry_readers: images as towers take them (app/image), for tests in Python
// (tests/support/images.py). Functions return null and set wherry_reader_error() on errors.
#include <memory>
#include <string>

#include "app/image/image.h"
#include "app/image/resize.h"
#include "app/testing/guarded.h"
#include "app/value/json_text.h"

namespace {

using namespace wherry::app;
using wherry::json::Value;
using wherry::json::Values;

RgbImage image_of(const uint8_t* pixels, int width, int height) {
  check_image_size(width, height);
  return {width, height, {pixels, pixels + static_cast<size_t>(width) * height * 3}};
}

}  // namespace

struct wherry_images {
  std::unique_ptr<ImageProcessor> processor;
  RgbImage resized;
  PreparedImage prepared;
  std::string description;
};

#define WHERRY_IMAGES extern "C" __attribute__((visibility("default")))

// json: wherry-vision.json, or "" for resizes alone.
WHERRY_IMAGES wherry_images* wherry_images_open(const char* json) {
  return guarded([&] {
    auto result = std::make_unique<wherry_images>();
    if (*json != 0) result->processor = ImageProcessor::create(wherry::json::from_json(json));
    return result.release();
  });
}

WHERRY_IMAGES void wherry_images_close(wherry_images* images) { delete images; }

// to: width, height, filter. Returns the pixels, valid until the next call.
WHERRY_IMAGES const uint8_t* wherry_images_resize(wherry_images* images, const uint8_t* pixels,
                                                  int width, int height, const int* to) {
  return guarded([&]() -> const uint8_t* {
    images->resized =
        resize(image_of(pixels, width, height), to[0], to[1], static_cast<Filter>(to[2]));
    return images->resized.pixels.data();
  });
}

// Returns JSON: {"placeholder": text, "soft_token": text, "prompt": [[text, tile, first row,
// rows]], "tiles": [{...}]}; the functions below have the arrays of tiles.
// low: 1 for the least detail.
WHERRY_IMAGES const char* wherry_images_prepare(wherry_images* images, const uint8_t* pixels,
                                                int width, int height, int low) {
  return guarded([&]() -> const char* {
    images->prepared = images->processor->prepare(image_of(pixels, width, height),
                                                  low != 0 ? Detail::kLow : Detail::kFull);
    Values prompt, tiles;
    for (const PromptPart& part : images->prepared.prompt) {
      prompt.push_back(wherry::json::make_list({part.text, part.tile, part.first_row, part.rows}));
    }
    for (const Tile& tile : images->prepared.tiles) {
      const auto elements = static_cast<int64_t>(tile.patches.size()) / tile.patch_count;
      tiles.push_back(wherry::json::make_dict({{"patches", tile.patch_count},
                                               {"elements", elements},
                                               {"taps", tile.taps},
                                               {"positions", !tile.positions.empty()},
                                               {"position_weights", !tile.position_weights.empty()},
                                               {"coordinates", !tile.coordinates.empty()},
                                               {"rows", tile.rows},
                                               {"grid_rows", tile.grid_rows},
                                               {"grid_columns", tile.grid_columns}}));
    }
    images->description = wherry::json::to_compact_json(
        wherry::json::make_dict({{"placeholder", images->processor->placeholder()},
                                 {"soft_token", images->processor->soft_token()},
                                 {"prompt", wherry::json::make_list(std::move(prompt))},
                                 {"tiles", wherry::json::make_list(std::move(tiles))}}));
    return images->description.c_str();
  });
}

WHERRY_IMAGES const float* wherry_images_levels(wherry_images* images) {
  return images->prepared.levels.data();
}

WHERRY_IMAGES const uint8_t* wherry_images_patches(wherry_images* images, size_t tile) {
  return images->prepared.tiles.at(tile).patches.data();
}

WHERRY_IMAGES const int32_t* wherry_images_positions(wherry_images* images, size_t tile) {
  return images->prepared.tiles.at(tile).positions.data();
}

WHERRY_IMAGES const float* wherry_images_position_weights(wherry_images* images, size_t tile) {
  return images->prepared.tiles.at(tile).position_weights.data();
}

WHERRY_IMAGES const int32_t* wherry_images_coordinates(wherry_images* images, size_t tile) {
  return images->prepared.tiles.at(tile).coordinates.data();
}

WHERRY_IMAGES const uint8_t* wherry_images_digest(wherry_images* images, size_t tile) {
  return images->prepared.tiles.at(tile).digest.data();
}
