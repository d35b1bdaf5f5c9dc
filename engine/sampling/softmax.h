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

// Maxima of groups that share x [n], which has no NaN: element i is of group i / kGroupBlock *
// kGroupColumns + i % kGroupColumns. Interleaved groups vectorise, which groups of neighbours would
// not. out [group_count(n)].
constexpr int64_t kGroupColumns = 64;
constexpr int64_t kGroupBlock = 64 * kGroupColumns;
int64_t group_count(int64_t n);  // none is empty
void group_maxima(const float* x, int64_t n, float* out);

// e^x, relative error below 3e-7; 0 for x < -87 (so for -inf), and x <= 88.
float exp_float(float x);

// Sum of x [n].
double sum(const float* x, int64_t n);

constexpr int64_t kSoftmaxBlock = 1024;

// out[i] = exp((x[i] - maximum) * inverse_temperature), [n]; out may be null. block_sums gets the
// sum of each kSoftmaxBlock of them, [ceil(n / kSoftmaxBlock)]. Returns the sum of all.
double exponentials(const float* x, int64_t n, float maximum, float inverse_temperature, float* out,
                    double* block_sums);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_SOFTMAX_H_
