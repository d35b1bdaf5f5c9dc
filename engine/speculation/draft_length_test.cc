#include "speculation/draft_length.h"

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(accepted_drafts_become_longer) {
  DraftLength drafts(-1);
  for (int i = 0; i < 30; ++i) {
    int64_t n = drafts.next(16, 8, {0.1, 0});
    drafts.record(n, n);
  }
  CHECK_EQ(drafts.next(16, 8, {0.1, 0}), 8);  // never more than the engine's choice
  CHECK_EQ(drafts.next(3, 8, {0.1, 0}), 3);
}

TEST(rejected_drafts_end_and_are_tried_again_now_and_then) {
  DraftLength drafts(8);
  for (int i = 0; i < 40; ++i) drafts.record(drafts.next(16, 0, {0.3, 0}), 0);
  int draft_tokens = 0;
  for (int i = 0; i < 480; ++i) {
    int64_t n = drafts.next(16, 0, {0.3, 0});
    draft_tokens += static_cast<int>(n);
    drafts.record(n, 0);
  }
  CHECK_EQ(draft_tokens, 10);
}

TEST(expensive_rows_make_drafts_rare) {
  DraftLength cheap(16), dear(16);
  CHECK(cheap.next(16, 0, {0.02, 0}) > dear.next(16, 0, {0.3, 0}));
  CHECK_EQ(DraftLength(16).next(16, 0, {0.9, 0}), 0);
  CHECK_EQ(DraftLength(16).next(16, 0, {0.1, 0.9}), 0);  // 0 because the draft model is too slow
}

TEST(tokens_that_are_computed_again_make_drafts_shorter) {
  CHECK(DraftLength(16).next(16, 0, {0.1, 0, 0.3}) < DraftLength(16).next(16, 0, {0.1, 0, 0}));
}

TEST(none_where_none_is_requested) {
  CHECK_EQ(DraftLength(0).next(16, 8, {0.01, 0}), 0);
  CHECK_EQ(DraftLength(-1).next(16, 0, {0.01, 0}), 0);
}

}  // namespace
}  // namespace wherry
