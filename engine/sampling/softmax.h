// Passes over a row of logits. The result does not depend on compiler, platform or vector width:
// fixed operations, a fixed order of additions, our own exp, no fused multiply-add.
#ifndef WHERRY_ENGINE_SAMPLING_SOFTMAX_H_
#define WHERRY_ENGINE_SAMPLING_SOFTMAX_H_

#include <cstdint>

namespace wherry {

struct RowMaximum {
  float value;
  int32_t index;  // the lowest of equals
  bool valid;     // no NaN, no +inf, and not all -inf
};
RowMaximum row_maximum(const float* x, int64_t n);

// Whether one of x [n], which has no NaN, is above the threshold.
bool any_above(const float* x, int64_t n, float threshold);

// e^x, relative error below 3e-7; 0 for x < -87 (so for -inf), and x <= 88.
float exp_float(float x);

// Of x [n].
double sum(const float* x, int64_t n);

constexpr int64_t kSoftmaxBlock = 1024;

// out[i] = exp((x[i] - maximum) * inverse_temperature), [n]; out may be null. block_sums gets the
// sum of each kSoftmaxBlock of them, [ceil(n / kSoftmaxBlock)]. Returns the sum of all.
double exponentials(const float* x, int64_t n, float maximum, float inverse_temperature, float* out,
                    double* block_sums);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_SOFTMAX_H_
