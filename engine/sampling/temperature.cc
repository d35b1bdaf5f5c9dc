#include "sampling/temperature.h"

#include <algorithm>
#include <limits>

#include "sampling/elementary.h"
#include "sampling/moments.h"

namespace wherry {

namespace {

// Returns the entropy relative to the entropy of a uniform distribution, in [0, 1].
double normalised_entropy(const float* x, int64_t vocab, float maximum) {
  int64_t possible = row_moments(x, vocab).count;
  if (possible < 2) return 0;
  double most = log_double(static_cast<double>(possible));
  return std::min(1.0, entropy(weight_sums(x, vocab, maximum, 1)) / most);
}

float dynamic_temperature(const SamplingParams& params, const float* x, int64_t vocab,
                          float maximum) {
  auto middle = static_cast<double>(params.temperature);
  auto range = static_cast<double>(params.dynamic_range);
  double low = std::max(0.0, middle - range), high = middle + range;
  double h = normalised_entropy(x, vocab, maximum);
  double share = h <= 0 ? 0 : exp_double(double{params.dynamic_exponent} * log_double(h));
  return static_cast<float>(low + (high - low) * share);
}

}  // namespace

float inverse_temperature(const SamplingParams& params, const float* x, int64_t vocab,
                          float maximum) {
  float temperature = params.dynamic_range > 0 ? dynamic_temperature(params, x, vocab, maximum)
                                               : params.temperature;
  // The result is finite, because 0 * inf would be NaN.
  return std::min(1 / temperature, std::numeric_limits<float>::max());
}

}  // namespace wherry
