// Passes over a row of logits: maximum, sums, exponentials. The results do not depend on compiler,
// platform or vector width: fixed operations, a fixed order of additions, our own exp, no fused
// multiply-add.
#ifndef WHERRY_ENGINE_SAMPLING_SOFTMAX_H_
#define WHERRY_ENGINE_SAMPLING_SOFTMAX_H_

#include <cstdint>

namespace wherry {

struct RowMaximum {
  float value;
  int32_t index;  // index of the maximum; the lowest one of equal values
  bool valid;     // true if the row has no NaN and no +inf, and is not all -inf
};
RowMaximum row_maximum(const float* x, int64_t n);

// Computes the maxima of groups of x [n], which has no NaN: element i belongs to group i /
// kGroupBlock * kGroupColumns + i % kGroupColumns. Interleaved groups vectorise, which groups of
// neighbours would not. out: [group_count(n)].
constexpr int64_t kGroupColumns = 64;
constexpr int64_t kGroupBlock = 64 * kGroupColumns;
int64_t group_count(int64_t n);  // number of groups, none of which is empty
void group_maxima(const float* x, int64_t n, float* out);

// Returns e^x for x <= 88 with a relative error below 3e-7; 0 for x < -87 (and for -inf).
float exp_float(float x);

// Returns the sum of x [n].
double sum(const float* x, int64_t n);

constexpr int64_t kSoftmaxBlock = 1024;

// Computes out[i] = exp((x[i] - maximum) * inverse_temperature), [n]; out may be null. block_sums
// gets the sum of each kSoftmaxBlock elements, [ceil(n / kSoftmaxBlock)]. Returns the sum of all
// elements.
double exponentials(const float* x, int64_t n, float maximum, float inverse_temperature, float* out,
                    double* block_sums);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_SOFTMAX_H_
