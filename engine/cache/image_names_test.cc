#include "cache/image_names.h"

#include <set>

#include "testing/testing.h"

namespace wherry {
namespace {

TilePart part(uint8_t last, int64_t rows, int64_t first = 0) {
  TilePart part;
  part.digest[31] = last;
  part.first = first;
  part.rows = rows;
  return part;
}

std::shared_ptr<const ImageTile> tile() { return std::make_shared<ImageTile>(); }

TEST(equal_tiles_have_one_name) {
  ImageNames names;
  auto first = tile(), second = tile(), third = tile();
  const int32_t name = names.name(part(1, 4), first);
  CHECK(name < 0);
  CHECK(names.name(part(2, 4), second) < 0);
  CHECK(names.name(part(2, 4), second) != name);
  CHECK(names.name(part(1, 8), second) != name);  // of another size
  CHECK_EQ(names.name(part(1, 4), third), name);
  CHECK(third == first);  // requests share the pixels
  first = third = nullptr;
  auto later = tile();
  const ImageTile* own = later.get();
  CHECK_EQ(names.name(part(1, 4), later), name);
  CHECK(later.get() == own);  // no request had the pixels any more
}

// The prefix cache must not take one for another; all show the same tile.
TEST(parts_of_a_tile_have_names_of_their_own) {
  ImageNames names;
  auto pixels = tile();
  std::set<int32_t> all{names.name(part(1, 8), pixels), names.name(part(1, 4)),
                        names.name(part(1, 4, 4)), names.name(part(1, 4, 1))};
  TilePart grid = part(1, 4);
  for (int64_t rows : {1, 2, 4}) {
    grid.grid_rows = rows;
    grid.grid_columns = 4 / rows;
    all.insert(names.name(grid));
  }
  CHECK_EQ(all.size(), 7u);
  CHECK_EQ(names.name(grid), *all.begin());  // the newest has the least number
  auto again = tile();
  CHECK_EQ(names.name(part(1, 8)), names.name(part(1, 8), again));
  CHECK(again == pixels);
}

TEST(a_name_is_never_given_twice) {
  ImageNames names(2);
  auto pixels = tile();
  const int32_t one = names.name(part(1, 4), pixels);
  const int32_t two = names.name(part(2, 4), pixels);
  CHECK_EQ(names.name(part(1, 4), pixels), one);
  const int32_t three = names.name(part(3, 4), pixels);  // 2 was requested least recently
  CHECK_EQ(names.size(), 2u);
  CHECK_EQ(names.name(part(1, 4), pixels), one);
  const int32_t again = names.name(part(2, 4), pixels);
  CHECK(again != one && again != two && again != three);
}

}  // namespace
}  // namespace wherry
