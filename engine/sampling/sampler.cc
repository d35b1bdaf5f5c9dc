#include "sampling/sampler.h"

#include "sampling/elementary.h"
#include "sampling/logprobs.h"
#include "sampling/rng.h"
#include "sampling/softmax.h"
#include "sampling/temperature.h"
#include "support/error.h"

namespace wherry {

Sample StandardSampler::sample(const SamplingInput& input, const float* logits, int64_t vocab,
                               const uint32_t* mask) {
  const SamplingParams& params = input.params;
  RowMaximum raw = row_maximum(logits, vocab);
  if (!raw.valid) {
    throw Error(WHERRY_INTERNAL,
                concat("the model's logits for token ", input.tokens.size(),
                       " hold NaN or infinity: the weights or the compiled model are damaged"));
  }
  Logprobs logprobs(logits, vocab, raw.value, &block_sums_);
  AdjustedRow row = adjustment_.apply(input, logits, vocab, mask, raw);
  Sample result;
  result.token = row.best.index;
  if (params.temperature > 0) {
    bool own = row.x == logits && params.temperature == 1 && params.dynamic_range == 0;
    draw(input, row, vocab, own ? logprobs.total() : -1, result);
  }
  result.logprob = logprobs.of(result.token);
  result.top = logprobs.top(params.top_logprobs);
  return result;
}

void StandardSampler::draw(const SamplingInput& input, const AdjustedRow& row, int64_t vocab,
                           double mass, Sample& result) {
  constexpr double kLn2 = 0.69314718055994530942;
  const SamplingParams& params = input.params;
  const auto index = static_cast<uint64_t>(input.output_size());
  float scale = inverse_temperature(params, row.x, vocab, row.best.value);
  kept_.start(row.x, vocab, row.best.value, scale, mass, mass < 0 ? nullptr : &block_sums_);
  if (params.steers_surprise()) {
    kept_.surprise(input.state.mu());
  } else {
    truncate(params, index);
  }
  Drawn drawn = draw_.from(kept_, uniform(params.seed, index, Stream::kToken));
  result.token = drawn.token;
  if (params.steers_surprise()) result.surprise = -log_double(drawn.probability) / kLn2;
}

void StandardSampler::truncate(const SamplingParams& params, uint64_t index) {
  if (params.top_n_sigma > 0) kept_.top_n_sigma(params.top_n_sigma);
  if (params.top_k > 0) kept_.top_k(params.top_k);
  if (params.typical_p < 1) kept_.typical(params.typical_p);
  if (params.top_p < 1) kept_.top_p(params.top_p);
  if (params.min_p > 0) kept_.min_p(params.min_p);
  if (params.xtc_probability == 0) return;
  auto probability = static_cast<double>(params.xtc_probability);
  if (uniform(params.seed, index, Stream::kExclude) < probability) {
    kept_.exclude_top(params.xtc_threshold);
  }
}

}  // namespace wherry
