// The sampling stages that change logits: bias, forbidden tokens, penalties, DRY (see sampler.h).
#ifndef WHERRY_ENGINE_SAMPLING_ADJUSTMENT_H_
#define WHERRY_ENGINE_SAMPLING_ADJUSTMENT_H_

#include <cstdint>
#include <vector>

#include "sampling/input.h"
#include "sampling/softmax.h"

namespace wherry {

struct AdjustedRow {
  const float* x;  // [vocab] logits; the model's own row if no stage changes it
  RowMaximum best;
};

// Applies the stages that change logits; reuses its memory for a row between calls.
class Adjustment {
 public:
  // Applies the stages to `logits` [vocab], whose maximum is `raw`, which must be valid. Throws
  // Error if no token is possible.
  AdjustedRow apply(const SamplingInput& input, const float* logits, int64_t vocab,
                    const uint32_t* mask, const RowMaximum& raw);

 private:
  void move(const SamplingInput& input, const float* logits, int64_t vocab, const uint32_t* mask,
            bool stops_forbidden);

  std::vector<float> row_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_ADJUSTMENT_H_
