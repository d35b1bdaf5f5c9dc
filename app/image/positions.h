// Positions of patches in a tower's learned table, which is a square of its own.
#ifndef WHERRY_APP_IMAGE_POSITIONS_H_
#define WHERRY_APP_IMAGE_POSITIONS_H_

#include "app/image/image.h"
#include "app/image/patches.h"

namespace wherry::app {

// Each of them takes a tile of cut_tile(), reads its coordinates, and sets its positions.

// The table has the tile's own grid: a position is the patch's place, row by row.
void use_places(Tile& tile, const PatchGrid& grid);

// Four rows of a table of side x side: bilinear, corners on corners, with the float32 weights of
// transformers' get_vision_interpolation_indices_and_weights (vision_utils.py).
void interpolate_corners(Tile& tile, const PatchGrid& grid, int side);

// Rows of a table of side x side that a bilinear filter joins, wider where the grid is smaller than
// the table: torch.nn.functional.interpolate(antialias=True), on SigLIP 2's table. Patches with
// fewer rows than `taps` have others of weight 0.
void interpolate_antialias(Tile& tile, const PatchGrid& grid, int side, int64_t taps);

// Returns the maximum number of rows that interpolate_antialias() joins, of grids of at least a
// number of blocks. block: patches of a block's side.
int64_t maximum_taps(int side, int block, int64_t blocks);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_POSITIONS_H_
