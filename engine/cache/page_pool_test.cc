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

TEST(a_sequence_grows_by_whole_pages_and_returns_them) {
  PagePool pool(4);
  {
    Sequence sequence(pool, 16);
    sequence.reserve(1);
    CHECK_EQ(sequence.pages().size(), 1u);
    sequence.reserve(16);
    CHECK_EQ(sequence.pages().size(), 1u);
    sequence.reserve(17);
    CHECK_EQ(sequence.pages().size(), 2u);
    sequence.reserve(3);  // never shrinks
    CHECK_EQ(pool.available(), 2);
  }
  CHECK_EQ(pool.available(), 4);
}

TEST(pages_for_rounds_up) {
  CHECK_EQ(pages_for(0, 16), 0);
  CHECK_EQ(pages_for(16, 16), 1);
  CHECK_EQ(pages_for(17, 16), 2);
}

}  // namespace
}  // namespace wherry
