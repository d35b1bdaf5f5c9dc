// Settings of processors that cut an image into square tiles: Idefics3's and SmolVLM's.
#ifndef WHERRY_APP_IMAGE_TILE_SETTINGS_H_
#define WHERRY_APP_IMAGE_TILE_SETTINGS_H_

#include <array>
#include <cstdint>
#include <string>

#include "app/image/resize.h"
#include "app/value/value.h"

namespace wherry::app {

struct TileSettings {
  int longest_edge;  // pixels to which an image is resized first
  int tile;          // pixels of a tile's side
  int patch;         // pixels of a patch's side
  int side;          // patches of a tile's side
  int scale;         // patches of the side of a block, which becomes a row of image features
  bool split;        // whether an image becomes several tiles
  Filter filter;
  std::array<float, 768> levels;  // [3, 256]
  std::string placeholder;
};

// settings: wherry-vision.json. Throws std::invalid_argument that lists all mismatches.
TileSettings read_tile_settings(const json::Value& settings);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_TILE_SETTINGS_H_
