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

#include "scheduling/request.h"

namespace wherry {

struct Sample {
  int32_t token = -1;
  float logprob = 0;  // of the model's own distribution: no bias, no penalties, temperature 1
  std::vector<std::pair<int32_t, float>> top;  // params.top_logprobs most likely ones, descending
};

// A policy; keeps scratch memory between calls, so one per thread.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // `logits` [vocab] of the request's newest token. Throws Error if they hold NaN or +inf, or leave
  // no token possible.
  virtual Sample sample(const Request& request, const float* logits, int64_t vocab) = 0;
};

class StandardSampler : public Sampler {
 public:
  Sample sample(const Request& request, const float* logits, int64_t vocab) override;

 private:
  const float* adjust(const Request& request, const float* logits, int64_t vocab);
  int32_t draw(const Request& request, const float* x, int64_t vocab, float maximum);
  int32_t draw_from_all(double u, float min_p, int64_t vocab, double total);
  int32_t draw_from_likeliest(double u, const SamplingParams& params, const float* x, int64_t vocab,
                              float maximum, float scale, double total);
  // The k largest of x in ids_, descending.
  void select(const float* x, int64_t vocab, int64_t k);

  std::vector<float> adjusted_, weights_;
  std::vector<double> block_sums_;
  std::vector<int32_t> ids_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_SAMPLER_H_
