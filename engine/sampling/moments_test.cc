#include "sampling/moments.h"

#include <cmath>
#include <limits>
#include <vector>

#include "sampling/rng.h"
#include "sampling/softmax.h"
#include "testing/testing.h"

namespace wherry {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> row(int64_t n) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(12 * uniform(4, static_cast<uint64_t>(i)) - 9));
    if (i % 7 == 3) x.back() = -kInfinity;
  }
  return x;
}

TEST(moments_are_of_what_is_possible) {
  for (int64_t n : {1, 5, 8, 1024, 3001}) {
    std::vector<float> x = row(n);
    double sum = 0, squares = 0, count = 0;
    for (float v : x) {
      if (v == -kInfinity) continue;
      sum += static_cast<double>(v);
      count += 1;
    }
    for (float v : x) {
      if (v != -kInfinity) squares += std::pow(static_cast<double>(v) - sum / count, 2);
    }
    Moments moments = row_moments(x.data(), n);
    CHECK_EQ(static_cast<double>(moments.count), count);
    CHECK(std::fabs(moments.mean - sum / count) < 1e-12);
    CHECK(std::fabs(moments.deviation - std::sqrt(squares / count)) < 1e-12);
  }
  const float nothing[] = {-kInfinity, -kInfinity};
  CHECK_EQ(row_moments(nothing, 2).count, 0);
}

TEST(entropy_is_shannons) {
  for (int64_t n : {1, 5, 1030, 3001}) {
    for (float scale : {0.5f, 1.0f, 3.0f}) {
      std::vector<float> x = row(n);
      float maximum = row_maximum(x.data(), n).value;
      double total = 0, sum = 0;
      for (float v : x) total += std::exp(static_cast<double>((v - maximum) * scale));
      for (float v : x) {
        double p = std::exp(static_cast<double>((v - maximum) * scale)) / total;
        if (p > 0) sum -= p * std::log(p);
      }
      WeightSums sums = weight_sums(x.data(), n, maximum, scale);
      CHECK_EQ(sums.total, exponentials(x.data(), n, maximum, scale, nullptr, nullptr));
      CHECK(std::fabs(entropy(sums) - sum) < 1e-5);
    }
  }
}

}  // namespace
}  // namespace wherry
