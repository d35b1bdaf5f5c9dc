// Samples a token from a row's candidates where they decide it, else from the whole row.
#ifndef WHERRY_ENGINE_MODEL_ROW_SAMPLER_H_
#define WHERRY_ENGINE_MODEL_ROW_SAMPLER_H_

#include <cstdint>

#include "model/model.h"
#include "sampling/candidate_sampler.h"
#include "sampling/sampler.h"

namespace wherry {

// Counts of sampled tokens: those decided by candidates, and those that needed whole rows.
struct RowCounts {
  uint64_t candidates = 0, full_rows = 0;
};

// Samples tokens from candidates or whole rows; reuses its memory between calls.
class RowSampler {
 public:
  // Samples row `i` of `rows`, the session's last results. Candidates and the whole row give the
  // same token, and which of them is read depends on the row and the request alone. `mask` and
  // errors are those of Sampler::sample.
  Sample sample(const SamplingInput& input, Session& session, const Rows& rows, int64_t i,
                const uint32_t* mask);

  // Whether sample() would read the whole row of logits.
  bool needs_row(const SamplingInput& input, const Rows& rows, int64_t i, bool masked);

  const RowCounts& counts() const { return counts_; }

 private:
  CandidateSampler candidates_;
  StandardSampler full_row_;
  RowCounts counts_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_ROW_SAMPLER_H_
