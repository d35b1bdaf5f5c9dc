#include "sampling/softmax.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "sampling/vector_width.h"

namespace wherry {

namespace {

constexpr int kLanes = 16;  // number of parallel accumulators; a vector register has 4 to 16 lanes

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

// Map the bits of floats to integers with the same order, and back.
inline int32_t flipped(int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }
inline int32_t ordered(float x) { return flipped(float_to_bits(x)); }

struct Range {
  int32_t low = std::numeric_limits<int32_t>::max();
  int32_t high = std::numeric_limits<int32_t>::min();
};

// Returns the range of the `ordered` integers. Compilers vectorise the maximum of integers, but not
// the maximum of floats, because of NaN.
WHERRY_EACH_WIDTH Range range(const float* x, int64_t n) {
  int32_t low = std::numeric_limits<int32_t>::max(), high = std::numeric_limits<int32_t>::min();
  for (int64_t i = 0; i < n; ++i) {
    int32_t key = ordered(x[i]);
    low = key < low ? key : low;
    high = key > high ? key : high;
  }
  return {low, high};
}

// Writes the maximum of each column over whole lines to out.
WHERRY_EACH_WIDTH void column_maxima(const float* x, int64_t lines, float* out) {
  for (int64_t line = 0; line < lines; ++line, x += kGroupColumns) {
    for (int64_t i = 0; i < kGroupColumns; ++i) out[i] = x[i] > out[i] ? x[i] : out[i];
  }
}

// Splits x = k ln2 + r with |r| <= ln2 / 2; then e^x = 2^k e^r, and e^r is computed by its Taylor
// series to r^7.
inline float exp_inline(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // has so few bits that k * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to the nearest integer
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

inline double sum_inline(const float* x, int64_t n) {
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane];
  }
  double total = 0;
  for (float lane : sums) total += static_cast<double>(lane);
  for (; i < n; ++i) total += static_cast<double>(x[i]);
  return total;
}

WHERRY_EACH_WIDTH double sum_of(const float* x, int64_t n) { return sum_inline(x, n); }

// Writes up to kSoftmaxBlock exponentials to out; returns their sum. It has two loops, because
// compilers vectorise the first over its elements and the second over its lanes, but neither when
// they are one.
WHERRY_EACH_WIDTH double block(const float* x, int64_t n, float maximum, float scale, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = exp_inline((x[i] - maximum) * scale);
  return sum_inline(out, n);
}

}  // namespace

int64_t group_count(int64_t n) {
  return n / kGroupBlock * kGroupColumns + std::min(n % kGroupBlock, kGroupColumns);
}

void group_maxima(const float* x, int64_t n, float* out) {
  for (; n >= kGroupColumns; x += kGroupBlock, n -= kGroupBlock, out += kGroupColumns) {
    std::copy(x, x + kGroupColumns, out);
    int64_t lines = std::min(n, kGroupBlock) / kGroupColumns;
    column_maxima(x + kGroupColumns, lines - 1, out);
    for (int64_t i = lines * kGroupColumns; i < std::min(n, kGroupBlock); ++i) {
      float& most = out[i % kGroupColumns];
      most = std::max(most, x[i]);
    }
  }
  if (n > 0) std::copy(x, x + n, out);
}

double sum(const float* x, int64_t n) { return sum_of(x, n); }

float exp_float(float x) { return exp_inline(x); }

RowMaximum row_maximum(const float* x, int64_t n) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Range all;
  int64_t where = 0;  // offset of the block with the first of the largest values
  for (int64_t start = 0; start < n; start += kSoftmaxBlock) {
    Range here = range(x + start, std::min(kSoftmaxBlock, n - start));
    if (here.high > all.high) where = start;
    all = {std::min(all.low, here.low), std::max(all.high, here.high)};
  }
  // In the order of `ordered`, NaNs lie beyond both infinities.
  bool valid = all.high < ordered(kInfinity) && all.high > ordered(-kInfinity) &&
               all.low >= ordered(-kInfinity);
  if (!valid) return {-kInfinity, -1, false};
  float value = bits_to_float(flipped(all.high));
  // Zeros of both signs are equal as numbers, so a zero of an earlier block may be the first.
  const float* first = std::find(value == 0 ? x : x + where, x + n, value);
  return {*first, static_cast<int32_t>(first - x), true};
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
