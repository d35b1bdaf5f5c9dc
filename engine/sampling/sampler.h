// From a row of logits to a token.
//
// In this order: bias, penalties (repetition over prompt and output as in Keskar et al. 2019,
// arXiv:1909.05858: positive logits are divided, negative ones multiplied; presence and frequency
// over the output, subtracted), temperature, top-k, top-p over what top-k left (the shortest run of
// most likely tokens whose share is at least top_p), min-p against the most likely token. Equal
// logits rank by token id. The draw is inverse transform sampling with uniform(seed, index of the
// token in the output) (rng.h), so a request's tokens depend on its own logits and seed alone.
#ifndef WHERRY_ENGINE_SAMPLING_SAMPLER_H_
#define WHERRY_ENGINE_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "sampling/params.h"
#include "sampling/state.h"

namespace wherry {

// What a token depends on beside its logits.
struct SamplingInput {
  const SamplingParams& params;
  const SamplerState& state;
  const std::vector<int32_t>& tokens;  // prompt and output
  int64_t prompt_size;

  int64_t output_size() const { return static_cast<int64_t>(tokens.size()) - prompt_size; }
};

// A policy; keeps scratch memory between calls, so one per thread.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // `logits` [vocab] that follow input.tokens; `mask` [ceil(vocab / 32)]: only tokens whose bit
  // (token % 32 of word token / 32) is set are possible; null: all are. Throws Error if the logits
  // hold NaN or +inf, or no token is possible.
  virtual Sample sample(const SamplingInput& input, const float* logits, int64_t vocab,
                        const uint32_t* mask) = 0;
};

class StandardSampler : public Sampler {
 public:
  Sample sample(const SamplingInput& input, const float* logits, int64_t vocab,
                const uint32_t* mask) override;

 private:
  const float* adjust(const SamplingInput& input, const float* logits, int64_t vocab,
                      const uint32_t* mask);
  int32_t draw(const SamplingInput& input, const float* x, int64_t vocab, float maximum);
  int32_t draw_from_all(double u, float min_p, int64_t vocab, double total);
  int32_t draw_from_likeliest(double u, const SamplingParams& params, const float* x, int64_t vocab,
                              float maximum, float scale, double total);

  std::vector<float> adjusted_, weights_;
  std::vector<double> block_sums_;
  std::vector<int32_t> ids_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_SAMPLER_H_
