// Helpers for tests of sampling: a request without an engine, and a statistical test of drawn
// tokens.
#ifndef WHERRY_ENGINE_TESTING_SAMPLING_H_
#define WHERRY_ENGINE_TESTING_SAMPLING_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sampling/rng.h"
#include "sampling/sampler.h"
#include "testing/testing.h"

namespace wherry::testing {

inline wherry_params defaults() {
  wherry_params params;
  wherry_params_init(&params);
  return params;
}

inline std::vector<float> random_logits(int64_t n, uint64_t seed, double spread) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(spread * (uniform(seed, static_cast<uint64_t>(i)) - 0.5)));
  }
  return x;
}

// A request for tests of sampling, with a prompt and an output.
class SampledRequest {
 public:
  SampledRequest(const wherry_params& given, int64_t vocab, std::vector<int32_t> prompt = {0},
                 const std::vector<int32_t>& output = {})
      : params_(checked_params(given, vocab)),
        tokens_(std::move(prompt)),
        prompt_size_(static_cast<int64_t>(tokens_.size())),
        state_(params_, tokens_) {
    for (int32_t token : output) append(token);
  }

  Sample sample(const std::vector<float>& x, const uint32_t* mask = nullptr) {
    return sample(x.data(), static_cast<int64_t>(x.size()), mask);
  }
  Sample sample(const float* x, int64_t vocab, const uint32_t* mask) {
    return sampler_.sample(input(), x, vocab, mask);
  }
  // Samples a token and appends it to the output.
  Sample next(const std::vector<float>& x) {
    Sample result = sample(x);
    append(result);
    return result;
  }
  void append(const Sample& sample) {
    tokens_.push_back(sample.token);
    state_.accept(params_, tokens_, &sample);
  }
  void append(int32_t given) {
    tokens_.push_back(given);
    state_.accept(params_, tokens_, nullptr);
  }

  SamplingInput input() const { return {params_, state_, tokens_, prompt_size_}; }
  const SamplerState& state() const { return state_; }
  StandardSampler& sampler() { return sampler_; }

 private:
  const SamplingParams params_;
  std::vector<int32_t> tokens_;
  const int64_t prompt_size_;
  SamplerState state_;
  StandardSampler sampler_;
};

// Tests drawn tokens against their probabilities with a chi-square test at the 0.1% level; tokens
// of probability 0 must never be drawn. Seeds are fixed, so a test passes always or never.
inline void check_draws(const std::vector<double>& expected, const std::function<int32_t()>& draw) {
  constexpr int kDraws = 10000;
  std::vector<int> counts(expected.size(), 0);
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(draw())];
  double chi2 = 0, pooled_expected = 0, pooled_count = 0;
  int degrees = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    double mean = expected[i] * kDraws;
    if (mean == 0) CHECK_EQ(counts[i], 0);
    if (mean < 5) {  // collects tokens that are too rare for the test alone
      pooled_expected += mean;
      pooled_count += counts[i];
      continue;
    }
    chi2 += (counts[i] - mean) * (counts[i] - mean) / mean;
    ++degrees;
  }
  if (pooled_expected > 1) {
    chi2 += (pooled_count - pooled_expected) * (pooled_count - pooled_expected) / pooled_expected;
    ++degrees;
  }
  CHECK(degrees >= 1);
  // Wilson-Hilferty approximation: with d degrees of freedom, chi2 exceeds this once in a thousand
  // draws.
  double d = degrees, z = 3.09, root = 1 - 2 / (9 * d) + z * std::sqrt(2 / (9 * d));
  CHECK(chi2 < d * root * root * root);
}

}  // namespace wherry::testing

#endif  // WHERRY_ENGINE_TESTING_SAMPLING_H_
