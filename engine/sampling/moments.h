// Statistics of a whole row: moments of its logits, and the entropy of its distribution. As in
// softmax.h, results do not depend on compiler, platform or vector width.
#ifndef WHERRY_ENGINE_SAMPLING_MOMENTS_H_
#define WHERRY_ENGINE_SAMPLING_MOMENTS_H_

#include <cstdint>

namespace wherry {

// Moments of the logits that are not -inf.
struct Moments {
  int64_t count;
  double mean;
  double deviation;  // standard deviation: sqrt(mean of (x - mean)^2)
};
Moments row_moments(const float* x, int64_t n);

// Sums over a row, where l = (x - maximum) * inverse_temperature and w = e^l.
struct WeightSums {
  double total;    // sum of w
  double product;  // sum of w * l, never above 0
};
WeightSums weight_sums(const float* x, int64_t n, float maximum, float inverse_temperature);

// Returns the entropy of the distribution w / total, in nats.
double entropy(const WeightSums& sums);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_MOMENTS_H_
