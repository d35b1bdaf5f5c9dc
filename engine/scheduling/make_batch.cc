// Fills the arrays of a planned step.
#include <algorithm>

#include "scheduling/scheduler.h"

namespace wherry {

namespace {

// Adds what only some models have of a row.
void add_place(const Request& request, int64_t position, const BatchShape& shape, Batch& batch) {
  if (request.images.empty()) return shape.add_text(position, 0, batch);
  if (shape.rope_positions) {
    const auto place = request.rope_position(position);
    batch.rope_positions.insert(batch.rope_positions.end(), place.begin(), place.end());
  }
  if (shape.last_visible) {
    batch.last_visible.push_back(static_cast<int32_t>(request.last_visible(position)));
  }
}

void add_sequence(const PlannedRows& entry, bool encode, size_t s, const BatchShape& shape,
                  Batch& batch) {
  const Request& request = *entry.request;
  auto add = [&](int64_t position, int32_t token) {
    batch.tokens.push_back(token);
    batch.positions.push_back(static_cast<int32_t>(position));
    batch.sequences.push_back(static_cast<int32_t>(s));
    batch.adapters.push_back(request.space.adapter);
    if (shape.rope_positions || shape.last_visible) add_place(request, position, shape, batch);
  };
  if (entry.chosen_from >= 0) {
    add(static_cast<int64_t>(request.tokens.size()), 0);
    batch.chosen_from.push_back(entry.chosen_from);
  } else {
    for (int64_t i = 0; i < entry.rows; ++i) {
      int64_t position = encode ? i : request.computed + i;
      auto at = static_cast<size_t>(position);
      add(position, encode ? request.source[at] : request.tokens[at]);
    }
  }
  if (!entry.image_rows.empty()) {
    batch.image_rows.resize(batch.tokens.size() - entry.image_rows.size(), -1);
    batch.image_rows.insert(batch.image_rows.end(), entry.image_rows.begin(),
                            entry.image_rows.end());
  }
  int64_t next = request.computed + entry.rows;
  for (int32_t token : entry.draft_tokens) add(next++, token);
  batch.query_indptr.push_back(static_cast<int32_t>(batch.tokens.size()));
  batch.slots.push_back(std::max(request.sequence.slot, 0));
  batch.source_lengths.push_back(static_cast<int32_t>(request.source.size()));
  for (size_t g = 0; g < batch.pages.size(); ++g) {
    PageTable& table = batch.pages[g];
    const std::vector<int32_t>& pages = request.sequence.pages[g];
    table.ids.insert(table.ids.end(), pages.begin(), pages.end());
    table.indptr.push_back(static_cast<int32_t>(table.ids.size()));
  }
}

// Adds the entry's rows that need results to the batch; returns how many there are.
int64_t add_results(const PlannedRows& entry, Batch& batch) {
  const Request& request = *entry.request;
  auto before = static_cast<int64_t>(batch.logit_rows.size());
  int32_t row = batch.query_indptr[batch.query_indptr.size() - 2];
  if (entry.chosen_from >= 0) {
    batch.logit_rows.push_back(row);
    return 1;
  }
  for (int64_t i = 0; i < entry.rows; ++i, ++row) {
    if (request.wants_row(request.computed + i)) batch.logit_rows.push_back(row);
  }
  for (size_t i = 0; i < entry.draft_tokens.size(); ++i) batch.logit_rows.push_back(row++);
  return static_cast<int64_t>(batch.logit_rows.size()) - before;
}

}  // namespace

Batch make_batch(Plan& plan, const BatchShape& shape) {
  Batch batch;
  batch.query_indptr.push_back(0);
  batch.pages.resize(shape.groups);
  for (PageTable& table : batch.pages) table.indptr.push_back(0);
  const bool encode = plan.entry == Entry::kEncode;
  for (size_t s = 0; s < plan.entries.size(); ++s) {
    add_sequence(plan.entries[s], encode, s, shape, batch);
    if (!encode) plan.entries[s].results = add_results(plan.entries[s], batch);
  }
  if (!batch.image_rows.empty()) batch.image_rows.resize(batch.tokens.size(), -1);
  // Chunks inside prompts need no results, but the kernels require at least one result row.
  if (batch.logit_rows.empty()) {
    batch.logit_rows.push_back(static_cast<int32_t>(batch.tokens.size()) - 1);
  }
  return batch;
}

}  // namespace wherry
