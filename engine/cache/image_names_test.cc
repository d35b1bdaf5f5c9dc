#include "cache/image_names.h"

#include "testing/testing.h"

namespace wherry {
namespace {

ImageDigest digest(uint8_t last) {
  ImageDigest digest{};
  digest[31] = last;
  return digest;
}

std::shared_ptr<const ImageTile> tile() { return std::make_shared<ImageTile>(); }

TEST(equal_tiles_have_one_name) {
  ImageNames names;
  auto first = tile(), second = tile(), third = tile();
  const int32_t name = names.name(digest(1), 4, first);
  CHECK(name < 0);
  CHECK(names.name(digest(2), 4, second) < 0);
  CHECK(names.name(digest(2), 4, second) != name);
  CHECK(names.name(digest(1), 8, second) != name);  // of another size
  CHECK_EQ(names.name(digest(1), 4, third), name);
  CHECK(third == first);  // requests share the pixels
  first = third = nullptr;
  auto later = tile();
  const ImageTile* own = later.get();
  CHECK_EQ(names.name(digest(1), 4, later), name);
  CHECK(later.get() == own);  // no request had the pixels any more
}

TEST(a_name_is_never_given_twice) {
  ImageNames names(2);
  auto pixels = tile();
  const int32_t one = names.name(digest(1), 4, pixels);
  const int32_t two = names.name(digest(2), 4, pixels);
  CHECK_EQ(names.name(digest(1), 4, pixels), one);
  const int32_t three = names.name(digest(3), 4, pixels);  // 2 was requested least recently
  CHECK_EQ(names.size(), 2u);
  CHECK_EQ(names.name(digest(1), 4, pixels), one);
  const int32_t again = names.name(digest(2), 4, pixels);
  CHECK(again != one && again != two && again != three);
}

}  // namespace
}  // namespace wherry
