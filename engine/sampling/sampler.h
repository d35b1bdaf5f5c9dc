// Samples a token from a row of logits, in this order:
//
//   1. bias          is added; -inf forbids
//   2. forbidden     tokens outside of the grammar mask or `allowed`, bad words (the last token
//                    of a sequence whose other tokens end the text), stop ids before
//                    min_tokens (unless nothing else is possible: a grammar may be
//                    complete)
//   3. penalties     repetition over prompt and output (Keskar et al. 2019, arXiv:1909.05858:
//                    positive logits are divided, negative ones multiplied), presence and
//                    frequency over the output, subtracted
//   4. DRY           dry.h; over prompt and output
//   5. temperature   temperature.h; 0 takes the most likely token and ends here
//   6. mirostat 2    if it is on, instead of 7 to 12
//   7. top-n-sigma   8. top-k   9. typical   10. top-p   11. min-p   12. XTC   (truncation.h)
//   13. the draw     draw.h
//
// Temperature comes before truncation, as in vLLM and transformers (llama.cpp applies it last):
// top_p, min_p, typical_p and XTC refer to the distribution that the draw uses. Top-n-sigma does
// not depend on temperature, and comes first because it refers to the whole row.
//
// Equal logits rank by token id. The draw takes uniform(seed, index of the token in the output),
// XTC another stream of that generator (rng.h), so a request's tokens depend on its own logits,
// history and seed alone.
#ifndef WHERRY_ENGINE_SAMPLING_SAMPLER_H_
#define WHERRY_ENGINE_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "sampling/adjustment.h"
#include "sampling/draw.h"
#include "sampling/input.h"
#include "sampling/truncation.h"

namespace wherry {

// The policy that samples tokens. It reuses scratch memory between calls, so each thread needs its
// own object.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Samples the token that follows input.tokens. logits: [vocab]. mask: [ceil(vocab / 32)], a token
  // is possible only if its bit (token % 32 of word token / 32) is set; null if all tokens are
  // possible. Throws Error if the logits hold NaN or +inf, or no token is possible.
  virtual Sample sample(const SamplingInput& input, const float* logits, int64_t vocab,
                        const uint32_t* mask) = 0;
};

class StandardSampler : public Sampler {
 public:
  Sample sample(const SamplingInput& input, const float* logits, int64_t vocab,
                const uint32_t* mask) override;
  // Returns the truncation of the last token that was not greedy; for tests.
  Truncation& kept() { return kept_; }

 private:
  // Draws a token into `result`. mass: the sum of the row's weights at its temperature, or -1 if
  // not known.
  void draw(const SamplingInput& input, const AdjustedRow& row, int64_t vocab, double mass,
            Sample& result);
  void truncate(const SamplingParams& params, uint64_t index);

  Adjustment adjustment_;
  std::vector<double> block_sums_;  // sums of exp(logit - maximum) for each block of kSoftmaxBlock
  Truncation kept_;
  Draw draw_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_SAMPLER_H_
