// Cuts images into the patches that towers take.
#ifndef WHERRY_APP_IMAGE_PATCHES_H_
#define WHERRY_APP_IMAGE_PATCHES_H_

#include "app/image/image.h"

namespace wherry::app {

struct PatchGrid {
  int patch;          // pixels of a patch's side
  int rows, columns;  // of patches; multiples of `block`
  int block;          // patches of the side of a block, which becomes a row of image features
};

struct Corner {
  int left = 0, top = 0;  // pixels
};

// Returns the tile of an image whose upper left corner is given: patches, their coordinates and the
// number of rows.
Tile cut_tile(const RgbImage& image, const PatchGrid& grid, Corner corner = {});

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_PATCHES_H_
