#include "sampling/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/elementary.h"
#include "sampling/softmax.h"
#include "sampling/vector_width.h"

namespace wherry {

namespace {

constexpr int kLanes = 8;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

double sum_of(const double* lanes) {
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += lanes[lane];
  return total;
}

WHERRY_EACH_WIDTH int64_t count_possible(const float* x, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += x[i] > kNothing ? 1 : 0;
  return count;
}

WHERRY_EACH_WIDTH double sum_possible(const float* x, int64_t n) {
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      float value = x[i + lane] > kNothing ? x[i + lane] : 0;
      sums[lane] += static_cast<double>(value);
    }
  }
  for (; i < n; ++i) sums[0] += x[i] > kNothing ? static_cast<double>(x[i]) : 0;
  return sum_of(sums);
}

WHERRY_EACH_WIDTH double sum_squares(const float* x, int64_t n, double mean) {
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      double distance = static_cast<double>(x[i + lane]) - mean;
      distance = x[i + lane] > kNothing ? distance : 0;
      sums[lane] += distance * distance;
    }
  }
  for (; i < n; ++i) {
    double distance = x[i] > kNothing ? static_cast<double>(x[i]) - mean : 0;
    sums[0] += distance * distance;
  }
  return sum_of(sums);
}

// Returns the sum of w * l over a block (see WeightSums); `weights` has the w. If w is 0, l may be
// -inf.
WHERRY_EACH_WIDTH double sum_products(const float* weights, const float* x, int64_t n,
                                      float maximum, float scale) {
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      float product = weights[i + lane] * ((x[i + lane] - maximum) * scale);
      sums[lane] += static_cast<double>(weights[i + lane] > 0 ? product : 0);
    }
  }
  for (; i < n; ++i) {
    if (weights[i] > 0) sums[0] += static_cast<double>(weights[i] * ((x[i] - maximum) * scale));
  }
  return sum_of(sums);
}

}  // namespace

Moments row_moments(const float* x, int64_t n) {
  int64_t count = count_possible(x, n);
  if (count == 0) return {0, 0, 0};
  auto possible = static_cast<double>(count);
  double mean = sum_possible(x, n) / possible;
  return {count, mean, std::sqrt(sum_squares(x, n, mean) / possible)};
}

WeightSums weight_sums(const float* x, int64_t n, float maximum, float inverse_temperature) {
  float weights[kSoftmaxBlock];
  WeightSums sums{0, 0};
  for (int64_t start = 0; start < n; start += kSoftmaxBlock) {
    int64_t count = std::min(kSoftmaxBlock, n - start);
    sums.total += exponentials(x + start, count, maximum, inverse_temperature, weights, nullptr);
    sums.product += sum_products(weights, x + start, count, maximum, inverse_temperature);
  }
  return sums;
}

double entropy(const WeightSums& sums) {
  return std::max(0.0, log_double(sums.total) - sums.product / sums.total);
}

}  // namespace wherry
