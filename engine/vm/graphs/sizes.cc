#include "vm/graphs/sizes.h"

#include <algorithm>

namespace wherry {

bool only_decodes(const Batch& batch) {
  const size_t rows = batch.tokens.size();
  return batch.query_indptr.size() == rows + 1 && batch.logit_rows.size() == rows;
}

int64_t rounded_pages(int64_t pages) {
  constexpr int64_t kSteps = 8;  // number of sizes up to each power of two
  int64_t step = 16;  // number of pages in a split-K part: see targets/kernels/gpu/splits.py
  while (step * kSteps < pages) step *= 2;
  return (pages + step - 1) / step * step;
}

Batch with_rounded_pages(const Batch& batch, const std::vector<int64_t>& most) {
  Batch rounded = batch;
  for (size_t group = 0; group < rounded.pages.size(); ++group) {
    PageTable& table = rounded.pages[group];
    const auto pages = static_cast<int64_t>(table.ids.size());
    const int64_t entries = std::max(pages, std::min(rounded_pages(pages), most[group]));
    table.ids.resize(static_cast<size_t>(entries), -1);
    table.indptr.back() = static_cast<int32_t>(entries);
  }
  return rounded;
}

StepGraphs::Key key_of(const Batch& batch, bool drawn) {
  StepGraphs::Key key;
  auto add = [&](size_t size) { key.push_back(static_cast<int64_t>(size)); };
  for (const auto* array :
       {&batch.tokens, &batch.positions, &batch.sequences, &batch.adapters, &batch.query_indptr,
        &batch.slots, &batch.source_lengths, &batch.logit_rows}) {
    add(array->size());
  }
  for (const PageTable& table : batch.pages) {
    add(table.indptr.size());
    add(table.ids.size());
  }
  add(batch.scales.size());
  add(drawn ? 1 : 0);
  return key;
}

}  // namespace wherry
