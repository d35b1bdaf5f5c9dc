// Sampling from the little that a device reads back of a row: its most likely tokens and a sum.
//
// The token is the one that the whole row would give (sampler.h), or none: then the sum was too
// coarse, the token lies beyond the candidates, or the request asks for what only a whole row can
// say, and the caller fetches that.
//
// Why it can be proved: with a fixed place of the draw, every stage that reads the sum (top-p, the
// draw) moves to a later rank or stays as the sum grows, in rounded arithmetic too. So where both
// ends of the sum's interval give one token, everything between them does.
#ifndef WHERRY_ENGINE_SAMPLING_CANDIDATES_H_
#define WHERRY_ENGINE_SAMPLING_CANDIDATES_H_

#include <cstdint>
#include <optional>

#include "model/candidates.h"
#include "sampling/draw.h"
#include "sampling/input.h"
#include "sampling/truncation.h"

namespace wherry {

// Keeps memory between calls.
class CandidateSampler {
 public:
  // Nothing where the whole row is needed. The sample's logprobs have the error of `total`.
  std::optional<Sample> sample(const SamplingInput& input, const Candidates& candidates);
  // Whether candidates can be enough for a request at this place; what only whole rows can answer
  // need not be computed. `masked`: a mask will be given.
  static bool may_do(const SamplingInput& input, bool masked);
  // The scale for which `count` candidates are to be asked for, so that sample() may do; 0: the
  // whole row is needed.
  static float scale(const SamplingInput& input, bool masked, int64_t count);
  // How a device draws the token with this number in the output, where scale() is not 0. What it
  // finds is most likely what sample() says.
  static Choice choice(const SamplingParams& params, int64_t index);

 private:
  // Index of a candidate, if the row's sum were `mass`.
  std::optional<int64_t> decide(const SamplingInput& input, const Candidates& candidates,
                                double mass);

  Truncation kept_;
  Draw draw_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_CANDIDATES_H_
