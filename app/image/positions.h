// Positions of patches in a tower's learned table, which is a square of its own.
#ifndef WHERRY_APP_IMAGE_POSITIONS_H_
#define WHERRY_APP_IMAGE_POSITIONS_H_

#include "app/image/image.h"
#include "app/image/patches.h"

namespace wherry::app {

// Each takes a tile of cut_tile(), whose coordinates it reads, and sets its positions.

// The table has the tile's own grid: a patch's position is its place, row by row. The tower takes
// no coordinates.
void use_places_as_positions(Tile& tile, int columns);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_POSITIONS_H_
