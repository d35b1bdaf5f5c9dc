#include "speculation/draft_model.h"

#include <algorithm>

#include "cache/open_session.h"
#include "support/clock.h"

namespace wherry {

DraftModel::DraftModel(std::shared_ptr<const Model> model, const KvCacheConfig& config,
                       int64_t context)
    : model_(std::move(model)),
      shape_(model_->metadata()),
      context_(std::min(context, model_->metadata().context)),
      max_rows_(std::min(config.chunk, model_->metadata().prefill_chunk)),
      max_sequences_(std::min(config.sequences, model_->metadata().max_batch)),
      cache_(model_->metadata(), config),
      session_(
          open_session(*model_, cache_, {max_rows_, max_sequences_, max_sequences_, context_})) {}

DraftModel::CachedSequence& DraftModel::cached_for(const DraftJob& job, StateChanges& changes) {
  auto [it, added] = sequences_.try_emplace(job.id);
  CachedSequence& cached = it->second;
  const std::vector<int32_t>& tokens = job.input.tokens;
  if (added) {
    cached.space = job.space;
    int64_t most = static_cast<int64_t>(tokens.size()) - 1;
    int64_t n = cache_.attach(cached.sequence, cached.space, tokens, most, changes);
    cached.tokens.assign(tokens.begin(), tokens.begin() + n);
    return cached;
  }
  // Rejected draft tokens in the cache are overwritten, so only the common prefix counts.
  size_t most = std::min(cached.tokens.size(), tokens.size() - 1);
  auto differ = std::mismatch(cached.tokens.begin(),
                              cached.tokens.begin() + static_cast<int64_t>(most), tokens.begin());
  cached.tokens.erase(differ.first, cached.tokens.end());
  return cached;
}

void DraftModel::propose(std::vector<DraftJob>& jobs, Session&) {
  for (;;) {
    StateChanges changes;
    std::vector<Turn> turns;
    int64_t rows_left = max_rows_;
    for (DraftJob& job : jobs) {
      if (static_cast<int64_t>(turns.size()) == max_sequences_) break;
      join(job, rows_left, turns, changes);
    }
    for (const auto& copy : changes.pages) session_->copy_page(copy.group, copy.from, copy.to);
    if (turns.empty()) return;
    step(turns);
  }
}

// Adds the job to this draft step; returns false if it has nothing to compute.
bool DraftModel::join(DraftJob& job, int64_t& rows_left, std::vector<Turn>& turns,
                      StateChanges& changes) {
  if (static_cast<int64_t>(job.draft_tokens.size()) >= job.most || rows_left == 0) return false;
  std::vector<int32_t> text = job.text();
  auto size = static_cast<int64_t>(text.size());
  if (size >= context_) return false;
  bool first = job.draft_tokens.empty();
  CachedSequence& cached = first ? cached_for(job, changes) : sequences_.at(job.id);
  auto computed = static_cast<int64_t>(cached.tokens.size());
  int64_t rows = std::min(size - computed, rows_left);
  if (!cache_.reserve(cached.sequence, computed + rows, 0)) {
    job.most = 0;  // the draft model's cache has no pages left for this job
    remove(job.id);
    return false;
  }
  rows_left -= rows;
  turns.push_back({&job, &cached, std::move(text), rows});
  return true;
}

void DraftModel::step(std::vector<Turn>& turns) {
  Batch batch;
  batch.query_indptr.push_back(0);
  batch.pages.resize(cache_.groups());
  for (PageTable& table : batch.pages) table.indptr.push_back(0);
  for (size_t s = 0; s < turns.size(); ++s) {
    const Turn& turn = turns[s];
    size_t computed = turn.cached->tokens.size();
    for (int64_t i = 0; i < turn.rows; ++i) {
      size_t position = computed + static_cast<size_t>(i);
      batch.tokens.push_back(turn.text[position]);
      batch.positions.push_back(static_cast<int32_t>(position));
      shape_.add_text(batch.positions.back(), 0, batch);
      batch.sequences.push_back(static_cast<int32_t>(s));
      batch.adapters.push_back(0);
    }
    batch.query_indptr.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.logit_rows.push_back(static_cast<int32_t>(batch.tokens.size()) - 1);
    // Requests candidates. A row that only reads the prompt samples no draft token; the other rows
    // are sampled without the mask.
    if (session_->max_candidates() > 0) {
      float scale = CandidateSampler::scale(turn.job->input, false, session_->max_candidates());
      batch.scales.push_back(scale);
    }
    batch.slots.push_back(0);
    batch.source_lengths.push_back(0);
    for (size_t g = 0; g < batch.pages.size(); ++g) {
      const std::vector<int32_t>& pages = turn.cached->sequence.pages[g];
      batch.pages[g].ids.insert(batch.pages[g].ids.end(), pages.begin(), pages.end());
      batch.pages[g].indptr.push_back(static_cast<int32_t>(batch.pages[g].ids.size()));
    }
  }
  double start = now_seconds();
  session_->launch(batch, Entry::kForward);
  Rows logits = session_->collect();
  double seconds = now_seconds() - start;
  // A step that also reads a prompt takes no typical time, so its time is not recorded.
  if (batch.tokens.size() == turns.size()) record(seconds);
  take_results(turns, logits);
}

void DraftModel::take_results(std::vector<Turn>& turns, const Rows& logits) {
  int64_t row = 0;
  for (Turn& turn : turns) {
    std::vector<int32_t>& tokens = turn.cached->tokens;
    auto computed = static_cast<int64_t>(tokens.size());
    tokens.insert(tokens.end(), turn.text.begin() + computed,
                  turn.text.begin() + computed + turn.rows);
    if (tokens.size() == turn.text.size()) {
      const SamplingInput& own = turn.job->input;
      SamplingInput input{own.params, own.state, turn.text, own.prompt_size};
      turn.job->draft_tokens.push_back(
          sampler_.sample(input, *session_, logits, row, nullptr).token);
    }
    ++row;
  }
}

void DraftModel::remove(uint64_t id) {
  auto it = sequences_.find(id);
  if (it == sequences_.end()) return;
  CachedSequence& cached = it->second;
  auto computed = static_cast<int64_t>(cached.tokens.size());
  cache_.release(cached.sequence, {cached.space, cached.tokens, computed}, true);
  sequences_.erase(it);
}

void DraftModel::clear() {
  while (!sequences_.empty()) remove(sequences_.begin()->first);
  cache_.clear();
}

}  // namespace wherry
