// Tokens of a step's rows, from as little of each row as is enough.
#ifndef WHERRY_ENGINE_SAMPLING_ROW_SAMPLER_H_
#define WHERRY_ENGINE_SAMPLING_ROW_SAMPLER_H_

#include <cstdint>

#include "model/model.h"
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace wherry {

// How many rows gave a token, by what of them was looked at.
struct RowCounts {
  uint64_t candidates = 0, whole = 0;
};

// Keeps memory between calls.
class RowSampler {
 public:
  // Row `i` of `rows`, which `session` gave. From its candidates where they came and decide, else
  // from the whole row: the token is the same, and what it is taken from depends on nothing but row
  // and request. Mask and errors: see Sampler.
  Sample sample(const SamplingInput& input, Session& session, const Rows& rows, int64_t i,
                const uint32_t* mask);

  // Whether that takes the whole row.
  bool needs_row(const SamplingInput& input, const Rows& rows, int64_t i, bool masked);

  const RowCounts& counts() const { return counts_; }

 private:
  CandidateSampler candidates_;
  StandardSampler whole_;
  RowCounts counts_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_ROW_SAMPLER_H_
