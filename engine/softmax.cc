#include "softmax.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace wherry {

namespace {

constexpr int kLanes = 16;  // accumulators side by side; a vector register holds 4 to 16 of them

inline float bits_to_float(int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline int32_t float_to_bits(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// x = k ln2 + r with |r| <= ln2 / 2; e^x = 2^k e^r, e^r by its Taylor series to r^7.
inline float exp_inline(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // few bits: k * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer
  float clamped = x < -87.0f ? -87.0f : x;
  float shifted = clamped * kLog2E + kRound;
  float k = shifted - kRound;
  float r = clamped - k * kLn2High;
  r = r - k * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  int32_t exponent = float_to_bits(shifted) - float_to_bits(kRound);
  float result = p * bits_to_float((exponent + 127) * (1 << 23));
  return x < -87.0f ? 0.0f : result;
}

// Sum of up to kSoftmaxBlock exponentials, which go to out. Two loops: compilers vectorise the
// first over its elements and the second over its lanes, but neither when they are one.
double block(const float* x, int64_t n, float maximum, float scale, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = exp_inline((x[i] - maximum) * scale);
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += out[i + lane];
  }
  double total = 0;
  for (float sum : sums) total += static_cast<double>(sum);
  for (; i < n; ++i) total += static_cast<double>(out[i]);
  return total;
}

}  // namespace

float exp_float(float x) { return exp_inline(x); }

RowMaximum row_maximum(const float* x, int64_t n) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  float best[kLanes];
  int32_t bad[kLanes] = {};
  std::fill(best, best + kLanes, kLowest);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      float v = x[i + lane];
      best[lane] = v > best[lane] ? v : best[lane];
      bad[lane] |= v <= kMax ? 0 : 1;  // NaN compares false
    }
  }
  float value = kLowest;
  bool valid = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    value = std::max(value, best[lane]);
    valid = valid && bad[lane] == 0;
  }
  for (; i < n; ++i) {
    value = x[i] > value ? x[i] : value;
    valid = valid && x[i] <= kMax;
  }
  valid = valid && value > kLowest;
  auto index = static_cast<int32_t>(valid ? std::find(x, x + n, value) - x : -1);
  return {value, index, valid};
}

double exponentials(const float* x, int64_t n, float maximum, float inverse_temperature, float* out,
                    double* block_sums) {
  float scratch[kSoftmaxBlock];
  double total = 0;
  for (int64_t start = 0; start < n; start += kSoftmaxBlock) {
    int64_t count = std::min(kSoftmaxBlock, n - start);
    float* to = out == nullptr ? scratch : out + start;
    double sum = block(x + start, count, maximum, inverse_temperature, to);
    if (block_sums != nullptr) block_sums[start / kSoftmaxBlock] = sum;
    total += sum;
  }
  return total;
}

}  // namespace wherry
