#include "app/image/positions.h"

namespace wherry::app {

void use_places_as_positions(Tile& tile, int columns) {
  tile.positions.reserve(static_cast<size_t>(tile.patch_count));
  for (size_t i = 0; i < tile.coordinates.size(); i += 2) {
    tile.positions.push_back(tile.coordinates[i] * columns + tile.coordinates[i + 1]);
  }
  tile.coordinates.clear();
}

}  // namespace wherry::app
