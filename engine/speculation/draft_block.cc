#include "speculation/draft_block.h"

#include <algorithm>

#include "support/clock.h"

namespace wherry {

void DraftBlock::propose(std::vector<DraftJob>& jobs, Session& session) {
  if (!session.can_fetch_rows()) return;  // in browsers no call can wait for a draft token
  for (;;) {
    std::vector<DraftJob*> open;
    for (DraftJob& job : jobs) {
      if (static_cast<int64_t>(job.draft_tokens.size()) < job.most) open.push_back(&job);
    }
    if (open.empty()) return;
    const Batch batch = batch_of(open, session);
    const double start = now_seconds();
    session.launch(batch, Entry::kDraft);
    const Rows logits = session.collect();
    int64_t row = 0;
    for (DraftJob* job : open) {
      const std::vector<int32_t> text = job->text();
      const SamplingInput& own = job->input;
      const SamplingInput input{own.params, own.state, text, own.prompt_size};
      job->draft_tokens.push_back(sampler_.sample(input, session, logits, row++, nullptr).token);
    }
    record(now_seconds() - start);
  }
}

// Returns a batch of one row for each job: its newest token, at the position after all others.
Batch DraftBlock::batch_of(const std::vector<DraftJob*>& open, const Session& session) const {
  Batch batch;
  batch.query_indptr.push_back(0);
  batch.pages.resize(shape_.groups);
  for (PageTable& table : batch.pages) table.indptr.push_back(0);
  for (const DraftJob* job : open) {
    const std::vector<int32_t>& drafted = job->draft_tokens;
    const auto row = static_cast<int32_t>(batch.tokens.size());
    const size_t size = job->input.tokens.size() + drafted.size();
    batch.tokens.push_back(drafted.empty() ? job->input.tokens.back() : drafted.back());
    batch.positions.push_back(static_cast<int32_t>(size) - 1);
    shape_.add_text(batch.positions.back(), job->rope_delta, batch);
    batch.sequences.push_back(row);
    batch.adapters.push_back(job->space.adapter);
    batch.query_indptr.push_back(row + 1);
    batch.logit_rows.push_back(row);
    batch.slots.push_back(std::max(job->sequence.slot, 0));
    batch.source_lengths.push_back(0);
    // As a draft model's rows, these are sampled without the mask.
    if (session.max_candidates() > 0) {
      batch.scales.push_back(CandidateSampler::scale(job->input, false, session.max_candidates()));
    }
    for (size_t g = 0; g < shape_.groups; ++g) {
      const std::vector<int32_t>& pages = job->sequence.pages[g];
      batch.pages[g].ids.insert(batch.pages[g].ids.end(), pages.begin(), pages.end());
      batch.pages[g].indptr.push_back(static_cast<int32_t>(batch.pages[g].ids.size()));
    }
  }
  return batch;
}

}  // namespace wherry
