#include "cache/image_store.h"

#include "testing/testing.h"

namespace wherry {
namespace {

// Computes a tile where the store has room; returns its first row.
int64_t add(ImageStore& store, int32_t name, int64_t rows, const std::set<int32_t>& kept = {}) {
  const int64_t first = store.find_room(rows, kept);
  if (first < 0) return first;
  store.place(name, first, rows);
  store.complete(name);
  return first;
}

TEST(features_are_there_once_they_are_complete) {
  ImageStore store(8);
  CHECK_EQ(store.use(-1), -1);
  store.place(-1, store.find_room(4, {}), 4);
  CHECK(!store.has(-1));
  CHECK_EQ(store.use(-1), -1);
  store.complete(-1);
  CHECK(store.has(-1));
  CHECK_EQ(store.use(-1), 0);
  store.drop(-1);
  CHECK(!store.has(-1));
  store.complete(-1);  // evicted before it was complete
  CHECK(!store.has(-1));
  CHECK_EQ(store.tiles(), 0u);
}

TEST(the_least_recently_used_tile_goes_first) {
  ImageStore store(12);
  CHECK_EQ(add(store, -1, 4), 0);
  CHECK_EQ(add(store, -2, 4), 4);
  CHECK_EQ(add(store, -3, 4), 8);
  store.use(-1);
  CHECK_EQ(add(store, -4, 4), 4);
  CHECK(store.has(-1) && !store.has(-2) && store.has(-3));
  CHECK_EQ(add(store, -5, 4), 8);
  CHECK_EQ(add(store, -6, 8), 0);  // in the place of -1 and -4, the older ones
  CHECK(store.has(-5) && store.has(-6));
  CHECK_EQ(store.tiles(), 2u);
}

TEST(tiles_that_are_kept_stay) {
  ImageStore store(12);
  for (int32_t name : {-1, -2, -3}) add(store, name, 4);
  CHECK_EQ(add(store, -4, 4, {-1, -2}), 8);
  CHECK_EQ(add(store, -5, 8, {-2}), -1);  // no 8 rows in a row
  CHECK_EQ(add(store, -5, 8, {-4}), 0);
  CHECK_EQ(add(store, -6, 4, {-4, -5}), -1);
  CHECK_EQ(add(store, -7, 13), -1);
  CHECK(store.has(-4) && store.has(-5));
}

TEST(a_tile_has_one_place) {
  ImageStore store(12);
  add(store, -1, 4);
  store.place(-1, 6, 4);  // computed again after a failure
  CHECK_EQ(store.tiles(), 1u);
  CHECK((store.free_rows() == std::vector<std::pair<int64_t, int64_t>>{{0, 6}, {10, 2}}));
}

TEST(places_of_other_sizes) {
  ImageStore store(10);
  CHECK_EQ(add(store, -1, 3), 0);
  CHECK_EQ(add(store, -2, 5), 3);
  CHECK_EQ(add(store, -3, 2), 8);
  CHECK_EQ(add(store, -4, 6, {-1}), 3);  // -2, and a part of -3
  CHECK((store.free_rows() == std::vector<std::pair<int64_t, int64_t>>{{9, 1}}));
  store.clear({-4});
  CHECK((store.free_rows() == std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {9, 1}}));
  store.clear();
  CHECK((store.free_rows() == std::vector<std::pair<int64_t, int64_t>>{{0, 10}}));
  CHECK(ImageStore(0).free_rows().empty());
}

}  // namespace
}  // namespace wherry
