// Samples from a row's candidates (its most likely tokens and a sum) without the whole row of
// logits.
//
// The result is the token that the whole row would give (sampler.h). There is no result if the
// sum was too coarse, the token is not among the candidates, or the request needs the whole row;
// the caller fetches the row then.
//
// The result is exact, because for a fixed random number each stage that reads the sum (top-p,
// the draw) is monotonic: as the sum grows, the stage's rank grows or stays, also in rounded
// arithmetic. So if both ends of the sum's error interval give the same token, the exact sum does,
// too.
#ifndef WHERRY_ENGINE_SAMPLING_CANDIDATE_SAMPLER_H_
#define WHERRY_ENGINE_SAMPLING_CANDIDATE_SAMPLER_H_

#include <cstdint>
#include <optional>

#include "sampling/candidates.h"
#include "sampling/draw.h"
#include "sampling/input.h"
#include "sampling/truncation.h"

namespace wherry {

// Samples from candidates; reuses its memory between calls.
class CandidateSampler {
 public:
  // Samples a token; returns nothing if the whole row is needed. The sample's logprobs have the
  // error of `total`.
  std::optional<Sample> sample(const SamplingInput& input, const Candidates& candidates);
  // Whether candidates may suffice for the request's next token. masked: the request has a grammar
  // mask.
  static bool may_do(const SamplingInput& input, bool masked);
  // Returns the scale at which to request `count` candidates for sample(); 0 if the whole row is
  // needed.
  static float scale(const SamplingInput& input, bool masked, int64_t count);
  // Returns how the device draws the output token of this index, if scale() is not 0. The device's
  // token almost always equals the token of sample().
  static Choice choice(const SamplingParams& params, int64_t index);

 private:
  // Returns the index of the candidate that the draw gives if the row's sum is `mass`.
  std::optional<int64_t> decide(const SamplingInput& input, const Candidates& candidates,
                                double mass);

  Truncation kept_;
  Draw draw_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_CANDIDATE_SAMPLER_H_
