#include "scheduling/scheduler.h"

#include <algorithm>

namespace wherry {

namespace {

void add_rows(Plan& plan, Request& request, int64_t rows) {
  request.sequence.reserve(request.computed + rows);
  Batch& batch = plan.batch;
  auto sequence = static_cast<int32_t>(plan.entries.size());
  for (int64_t i = 0; i < rows; ++i) {
    int64_t position = request.computed + i;
    batch.tokens.push_back(request.tokens[static_cast<size_t>(position)]);
    batch.positions.push_back(static_cast<int32_t>(position));
    batch.sequences.push_back(sequence);
  }
  batch.query_indptr.push_back(static_cast<int32_t>(batch.tokens.size()));
  const std::vector<int32_t>& pages = request.sequence.pages();
  batch.page_ids.insert(batch.page_ids.end(), pages.begin(), pages.end());
  batch.page_indptr.push_back(static_cast<int32_t>(batch.page_ids.size()));
  bool samples = rows == request.pending();
  if (samples) batch.logit_rows.push_back(static_cast<int32_t>(batch.tokens.size()) - 1);
  plan.entries.push_back({&request, rows, samples});
}

// Pages that admitted requests may still take.
int64_t promised_pages(const RequestQueues& queues) {
  int64_t promised = 0;
  for (const Request* request : queues.active) {
    promised += request->most_pages() - static_cast<int64_t>(request->sequence.pages().size());
  }
  return promised;
}

}  // namespace

Plan FirstComeScheduler::plan(RequestQueues& queues, PagePool& pool) {
  Plan plan;
  plan.batch.query_indptr.push_back(0);
  plan.batch.page_indptr.push_back(0);
  int64_t budget = limits_.max_rows;
  for (Request* request : queues.active) {
    if (request->state != RequestState::kRunning) continue;
    add_rows(plan, *request, 1);
    --budget;
  }
  auto prefill = [&](Request* request) {
    int64_t rows = std::min(request->pending(), budget);
    if (rows > 0) add_rows(plan, *request, rows);
    budget -= rows;
  };
  for (Request* request : queues.active) {
    if (request->state == RequestState::kPrefilling) prefill(request);
  }
  int64_t unpromised = pool.available() - promised_pages(queues);
  while (budget > 0 && !queues.waiting.empty()) {
    Request* request = queues.waiting.front();
    bool fits = request->most_pages() <= unpromised &&
                queues.active.size() < static_cast<size_t>(limits_.max_batch);
    if (!fits) break;  // no overtaking: a large request would wait for ever
    unpromised -= request->most_pages();
    queues.active.push_back(request);
    queues.waiting.pop_front();
    request->state = RequestState::kPrefilling;
    prefill(request);
  }
  // Chunks inside prompts want no logits, but kernels are spared the case of zero rows.
  if (!plan.empty() && plan.batch.logit_rows.empty()) {
    plan.batch.logit_rows.push_back(static_cast<int32_t>(plan.batch.tokens.size()) - 1);
  }
  return plan;
}

}  // namespace wherry
