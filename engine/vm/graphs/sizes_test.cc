#include "vm/graphs/sizes.h"

#include "testing/testing.h"

namespace wherry {
namespace {

// Returns a decode step of sequences with these numbers of pages.
Batch batch_of(const std::vector<int>& pages) {
  Batch batch;
  batch.query_indptr = {0};
  batch.pages.resize(1);
  PageTable& table = batch.pages[0];
  table.indptr = {0};
  for (int count : pages) {
    auto row = static_cast<int32_t>(batch.tokens.size());
    batch.tokens.push_back(row);
    batch.positions.push_back(16 * count - 1);
    batch.sequences.push_back(row);
    batch.adapters.push_back(0);
    batch.query_indptr.push_back(row + 1);
    batch.logit_rows.push_back(row);
    batch.slots.push_back(row);
    batch.source_lengths.push_back(0);
    for (int i = 0; i < count; ++i) table.ids.push_back(static_cast<int32_t>(table.ids.size()));
    table.indptr.push_back(static_cast<int32_t>(table.ids.size()));
  }
  return batch;
}

TEST(tables_grow_by_few_sizes) {
  CHECK_EQ(rounded_pages(1), 16);
  CHECK_EQ(rounded_pages(16), 16);
  CHECK_EQ(rounded_pages(17), 32);
  CHECK_EQ(rounded_pages(128), 128);
  CHECK_EQ(rounded_pages(129), 160);
  CHECK_EQ(rounded_pages(1025), 1280);
  for (int64_t pages = 1; pages < 5000; ++pages) {
    const int64_t rounded = rounded_pages(pages);
    CHECK(rounded >= pages && rounded % 16 == 0 && rounded_pages(rounded) == rounded);
    CHECK(pages < 64 || 4 * rounded <= 5 * pages);
  }
}

TEST(the_last_sequence_owns_what_nobody_reads) {
  Batch rounded = with_rounded_pages(batch_of({3, 20}), {1000});
  const PageTable& table = rounded.pages[0];
  CHECK_EQ(table.ids.size(), 32u);
  CHECK((table.indptr == std::vector<int32_t>{0, 3, 32}));
  for (size_t i = 0; i < table.ids.size(); ++i) {
    CHECK_EQ(table.ids[i], i < 23 ? static_cast<int32_t>(i) : -1);
  }
  CHECK_EQ(with_rounded_pages(batch_of({3, 20}), {25}).pages[0].ids.size(), 25u);
}

TEST(steps_of_other_sizes_have_other_keys) {
  const StepGraphs::Key key = key_of(batch_of({3, 20}), false);
  Batch longer = batch_of({3, 21}), more = batch_of({3, 19, 1}), scaled = batch_of({3, 20});
  scaled.scales = {1, 1};
  CHECK(key == key_of(batch_of({20, 3}), false));
  CHECK(key != key_of(longer, false));
  CHECK(key != key_of(more, false));
  CHECK(key != key_of(scaled, false));
  CHECK(key != key_of(batch_of({3, 20}), true));
  CHECK(key_of(with_rounded_pages(batch_of({3, 20}), {99}), false) ==
        key_of(with_rounded_pages(longer, {99}), false));
}

TEST(only_steps_of_one_row_a_sequence_come_again) {
  CHECK(only_decodes(batch_of({3, 20})));
  Batch chunk = batch_of({3, 20});
  chunk.query_indptr = {0, 2};
  CHECK(!only_decodes(chunk));
  Batch silent = batch_of({3, 20});
  silent.logit_rows.pop_back();
  CHECK(!only_decodes(silent));
}

}  // namespace
}  // namespace wherry
