#include "scheduling/step.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "sampling/logprobs.h"
#include "support/clock.h"
#include "support/error.h"

namespace wherry {

std::string current_reason() {
  try {
    throw;
  } catch (const tvm::ffi::Error& error) {
    return concat(std::string(error.kind()), ": ", std::string(error.message()));
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

Stepper::Stepper(std::unique_ptr<Session> session, std::unique_ptr<Drafter> drafter,
                 StepBudget& budget, const BatchShape& shape)
    : session_(std::move(session)), drafter_(std::move(drafter)), budget_(budget), shape_(shape) {}

void Stepper::launch(Plan& plan) {
  apply(plan.changes);
  restore(plan);
  mask_seconds_ = 0;
  if (plan.entries.empty()) return;
  if (plan.entry == Entry::kSee) return see(plan);
  if (plan.entry == Entry::kForward) {
    draft(plan);
    save_states(plan);
  }
  Batch batch = make_batch(plan, shape_);
  if (plan.entry == Entry::kForward) request_candidates(plan, batch);
  plan.launched = now_seconds();
  session_->launch(batch, plan.entry);
  double launched = now_seconds();
  plan.launch_seconds = launched - plan.launched;
  if (plan.entry == Entry::kForward) fill_masks(plan);
  mask_seconds_ = now_seconds() - launched;
}

void Stepper::see(Plan& plan) {
  plan.launched = now_seconds();
  for (const PlannedRows& entry : plan.entries) {
    session_->see(*entry.image->tile, entry.image_first);
  }
  plan.launch_seconds = now_seconds() - plan.launched;
}

// Restores pages from disk; only a few if the step also has rows, because other requests wait for
// those.
void Stepper::restore(Plan& plan) {
  constexpr int64_t kBesideRows = 8;  // pages
  for (Request* request : plan.restores) {
    int64_t page = request->sequence.committed;
    int64_t requested = request->on_disk;
    if (!plan.entries.empty()) requested = std::min(requested, kBesideRows);
    int64_t n = disk_->restore(request->sequence, request->space, request->tokens, page, requested);
    request->restored = n;
    request->on_disk = n < requested ? 0 : request->on_disk - n;
  }
}

void Stepper::apply(const StateChanges& changes) {
  for (const auto& copy : changes.pages) session_->copy_page(copy.group, copy.from, copy.to);
  for (const auto& copy : changes.slots) {
    if (copy.from < 0) {
      session_->clear_slot(copy.to);
    } else {
      session_->copy_slot(copy.from, copy.to);
    }
  }
}

// Copies recurrent states before their rows with draft tokens: if a draft token is rejected, the
// sequence goes back to the copy (KvCache::settle).
void Stepper::save_states(const Plan& plan) {
  for (const PlannedRows& entry : plan.entries) {
    if (entry.draft_tokens.empty()) continue;
    const SequenceState& sequence = entry.request->sequence;
    if (sequence.spare >= 0) session_->copy_slot(sequence.slot, sequence.spare);
  }
}

// Proposes draft tokens: those that the mask forces, else those of prompt lookup, the draft model
// or the block of multi-token prediction. A draft model reads tokens alone, so it proposes none for
// requests with images.
void Stepper::draft(Plan& plan) {
  std::vector<PlannedRows*> open;
  for (PlannedRows& entry : plan.entries) {
    if (entry.max_draft_tokens == 0) continue;
    Request& request = *entry.request;
    try {
      if (request.mask) entry.draft_tokens = request.mask->forced(entry.max_draft_tokens);
      entry.forced = !entry.draft_tokens.empty();
      if (!entry.forced && entry.most_drafts > 0) {
        entry.draft_tokens =
            request.lookup.propose(request.tokens, request.prompt_size, entry.most_drafts);
      }
      const bool reads = drafter_ && (request.images.empty() || drafter_->reads_images());
      if (entry.draft_tokens.empty() && entry.most_drafts > 0 && reads) open.push_back(&entry);
    } catch (...) {
      entry.error = current_reason();
    }
  }
  if (!open.empty()) run_drafter(open);
}

void Stepper::run_drafter(std::vector<PlannedRows*>& entries) {
  std::vector<DraftJob> jobs;
  for (PlannedRows* entry : entries) {
    Request& request = *entry->request;
    jobs.push_back({request.id,
                    request.sampling(),
                    request.space,
                    request.sequence,
                    request.rope_delta(),
                    entry->most_drafts,
                    {}});
  }
  drafter_->propose(jobs, *session_);
  for (size_t i = 0; i < jobs.size(); ++i)
    entries[i]->draft_tokens = std::move(jobs[i].draft_tokens);
  if (drafter_->step_seconds() > 0) budget_.record_draft(drafter_->step_seconds());
}

void Stepper::fill_masks(Plan& plan) {
  for (PlannedRows& entry : plan.entries) {
    Request& request = *entry.request;
    bool samples = request.mask && entry.draws();
    if (!samples || !entry.error.empty()) continue;
    try {
      request.mask->bits();
    } catch (...) {
      entry.error = current_reason();
    }
  }
}

// Requests candidates instead of whole rows of logits, for rows that only sample a token.
void Stepper::request_candidates(Plan& plan, Batch& batch) const {
  const int64_t count = session_->max_candidates();
  if (count == 0) return;
  bool some = false;
  for (PlannedRows& entry : plan.entries) {
    const Request& request = *entry.request;
    bool samples = entry.draws();
    auto sampled = samples ? 1 + static_cast<int64_t>(entry.draft_tokens.size()) : 0;
    bool masked = request.mask != nullptr;
    float scale = samples ? CandidateSampler::scale(request.sampling(), masked, count) : 0;
    some = some || scale > 0;
    batch.scales.insert(batch.scales.end(), static_cast<size_t>(entry.results - sampled), 0.0f);
    batch.scales.insert(batch.scales.end(), static_cast<size_t>(sampled), scale);
    Choice choice = CandidateSampler::choice(request.params, entry.next_output());
    entry.device_draws = scale > 0 && (session_->draws() || choice.most_likely());
    if (session_->chains()) {
      batch.choices.resize(batch.scales.size());
      if (entry.device_draws) batch.choices.back() = choice;
    }
  }
  // True if the batch has only the padding row, which is never read.
  bool nobody = batch.scales.empty();
  if (nobody) batch.scales.assign(batch.logit_rows.size(), 1.0f);
  if (session_->chains()) batch.choices.resize(batch.scales.size());
  if (some || nobody) return;
  batch.scales.clear();
  batch.choices.clear();
}

bool Stepper::ready(Plan& plan) {
  if (plan.entries.empty() || plan.entry != Entry::kForward) return true;
  if (session_->can_fetch_rows()) return true;
  const Rows rows = session_->collect();
  if (rows.candidates.empty()) return true;
  int64_t row = 0;
  bool requested = false;
  for (const PlannedRows& entry : plan.entries) {
    const int64_t end = row + entry.results;
    const Request& request = *entry.request;
    if (entry.rows == request.pending() && entry.error.empty() && entry.results > 0) {
      requested = request_rows(entry, rows, end) || requested;
    }
    row = end;
  }
  return !requested;
}

// Requests the whole rows of an entry whose candidates do not decide a token; the entry's results
// end at `end`. It assumes that each draft token is accepted, because the row after it is read only
// then.
bool Stepper::request_rows(const PlannedRows& entry, const Rows& rows, int64_t end) {
  const Request& request = *entry.request;
  const SamplingInput sampling = request.sampling();
  std::vector<int32_t> text = sampling.tokens;
  const SamplingInput input{sampling.params, sampling.state, text, sampling.prompt_size};
  const auto draft_tokens = static_cast<int64_t>(entry.draft_tokens.size());
  bool requested = false;
  for (int64_t i = 0; i <= draft_tokens; ++i) {
    const int64_t row = end - draft_tokens - 1 + i;
    if (sampler_.needs_row(input, rows, row, request.mask != nullptr)) {
      requested = session_->request_row(row) || requested;
    }
    if (i < draft_tokens) text.push_back(entry.draft_tokens[static_cast<size_t>(i)]);
  }
  return requested;
}

StepResult Stepper::collect(Plan& plan) {
  StepResult result;
  if (plan.entries.empty()) return result;
  if (plan.entry == Entry::kSee) {
    result.outcomes.resize(plan.entries.size());
    return result;
  }
  const RowCounts before = sampler_.counts();
  const uint64_t bytes = session_->bytes_read();
  try {
    collect_outcomes(plan, result);
  } catch (...) {
    result.failure = current_reason();
    result.outcomes.clear();
  }
  const RowCounts& after = sampler_.counts();
  result.rows = {after.candidates - before.candidates, after.full_rows - before.full_rows};
  result.bytes_read = session_->bytes_read() - bytes;
  result.graphs = session_->graphs();
  result.chains_given_up = session_->chains_given_up();
  return result;
}

void Stepper::collect_outcomes(Plan& plan, StepResult& result) {
  double start = now_seconds();
  Rows rows = session_->collect();
  double collected = now_seconds();
  result.collect_seconds = collected - start;
  for (const Candidates& row : rows.candidates) result.chosen.push_back(row.chosen);
  int64_t row = 0;
  for (PlannedRows& entry : plan.entries) {
    result.outcomes.push_back(outcome_of(entry, rows, row));
  }
  result.sample_seconds = now_seconds() - collected;
}

// Samples an entry. `row` is the entry's first result row on entry and the next entry's on return.
Outcome Stepper::outcome_of(PlannedRows& entry, const Rows& results, int64_t& row) {
  Outcome outcome;
  outcome.error = entry.error;
  int64_t first = std::exchange(row, row + entry.results);
  if (entry.request == nullptr) return outcome;
  if (row > results.rows) {
    throw Error(WHERRY_INTERNAL, concat("the model gave ", results.rows,
                                        " rows of results; at least ", row, " were requested"));
  }
  if (entry.results == 0 || !outcome.error.empty()) return outcome;
  Request& request = *entry.request;
  if (request.embed) {
    const float* data = session_->row(first);
    outcome.embedding.assign(data, data + results.columns);
    return outcome;
  }
  try {
    int64_t sampled_from = first;
    int64_t prompt_rows = entry.results - static_cast<int64_t>(entry.draft_tokens.size()) -
                          (entry.rows == request.pending() ? 1 : 0);
    for (int64_t i = 0; i < prompt_rows; ++i, ++sampled_from) {
      auto token = static_cast<size_t>(request.prompt_reported + i);
      ScoredToken known = score(session_->row(sampled_from), results.columns, request.tokens[token],
                                request.params.prompt_logprobs);
      outcome.prompt.push_back({request.tokens[token], known.logprob, std::move(known.top)});
    }
    if (entry.rows == request.pending()) sample_outputs(entry, results, sampled_from, outcome);
  } catch (...) {
    outcome.error = current_reason();
  }
  return outcome;
}

// Samples token by token, as without draft tokens; after an accepted draft token, the next result
// row already exists.
void Stepper::sample_outputs(PlannedRows& entry, const Rows& results, int64_t row,
                             Outcome& outcome) {
  Request& request = *entry.request;
  for (size_t i = 0;; ++i, ++row) {
    const uint32_t* mask = request.mask ? request.mask->bits() : nullptr;
    Sampled next{sampler_.sample(request.sampling(), *session_, results, row, mask),
                 WHERRY_RUNNING};
    next.finish = request.append(next.sample);
    // A grammar does not describe the stop token, so the mask does not see it.
    if (request.mask && next.finish != WHERRY_STOP && request.mask->accept(next.sample.token)) {
      next.finish = WHERRY_STOP;
    }
    bool right = i < entry.draft_tokens.size() && next.sample.token == entry.draft_tokens[i];
    bool ends = next.finish != WHERRY_RUNNING;
    outcome.samples.push_back(std::move(next));
    if (right && !ends) ++outcome.accepted;
    if (ends || !right) return;
  }
}

}  // namespace wherry
