#include "cache/page_pool.h"

#include <set>

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(pages_are_distinct_and_come_back) {
  PagePool pool(5);
  std::set<int32_t> taken;
  for (int i = 0; i < 5; ++i) taken.insert(pool.take());
  CHECK((taken == std::set<int32_t>{0, 1, 2, 3, 4}));
  CHECK_EQ(pool.available(), 0);
  ERROR_OF(WHERRY_INTERNAL, pool.take());
  pool.release(3);
  CHECK_EQ(pool.take(), 3);
}

TEST(a_shared_page_stays_until_the_last_owner_goes) {
  PagePool pool(2);
  int32_t page = pool.take();
  pool.share(page);
  pool.release(page);
  CHECK_EQ(pool.available(), 1);
  pool.release(page);
  CHECK_EQ(pool.available(), 2);
  ERROR_OF(WHERRY_INTERNAL, pool.release(page));
  ERROR_OF(WHERRY_INTERNAL, pool.share(page));
}

TEST(pages_that_only_the_tree_holds_are_counted) {
  PagePool pool(3);
  int32_t page = pool.take();
  pool.share_with_tree(page);
  CHECK_EQ(pool.idle(), 0);  // no page is idle, because the sequence also has a reference
  pool.release(page);
  CHECK_EQ(pool.idle(), 1);
  pool.share(page);
  pool.share(page);
  CHECK_EQ(pool.idle(), 0);
  pool.release(page);
  pool.release(page);
  CHECK_EQ(pool.idle(), 1);
  pool.release_from_tree(page);
  CHECK_EQ(pool.idle(), 0);
  CHECK_EQ(pool.available(), 3);
}

TEST(pages_for_rounds_up) {
  CHECK_EQ(pages_for(0, 16), 0);
  CHECK_EQ(pages_for(16, 16), 1);
  CHECK_EQ(pages_for(17, 16), 2);
}

}  // namespace
}  // namespace wherry
