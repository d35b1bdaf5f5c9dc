#include "sampling/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "sampling/rng.h"
#include "testing/testing.h"

namespace wherry {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(exp_is_close_to_exp) {
  double worst = 0;
  for (double x = -87; x < 0.5; x += 0.000731) {
    auto argument = static_cast<float>(x);
    double exact = std::exp(static_cast<double>(argument));
    worst = std::max(worst, std::fabs(exp_float(argument) - exact) / exact);
  }
  CHECK(worst < 3e-7);
  CHECK_EQ(exp_float(0), 1.0f);
  CHECK_EQ(exp_float(-kInfinity), 0.0f);
  CHECK_EQ(exp_float(-100), 0.0f);
}

TEST(maximum_is_the_first_of_equals) {
  for (int64_t n : {1, 5, 16, 17, 31, 64, 1000}) {
    std::vector<float> x(static_cast<size_t>(n), -2.5f);
    CHECK_EQ(row_maximum(x.data(), n).index, 0);
    for (int64_t i = n - 1; i >= 0; --i) {
      x[static_cast<size_t>(i)] = 1;
      RowMaximum maximum = row_maximum(x.data(), n);
      CHECK(maximum.valid);
      CHECK_EQ(maximum.index, i);
      CHECK_EQ(maximum.value, 1.0f);
    }
  }
}

TEST(maximum_of_rows_longer_than_a_block) {
  constexpr int64_t n = 3 * kSoftmaxBlock + 5;
  for (float least : {-3.0f, -kInfinity}) {
    for (int64_t i : {int64_t{0}, kSoftmaxBlock - 1, kSoftmaxBlock, 2 * kSoftmaxBlock + 9, n - 1}) {
      std::vector<float> x(static_cast<size_t>(n), least);
      x[static_cast<size_t>(i)] = -0.5f;
      x.back() = -0.5f;  // equals an earlier maximum; the first one wins
      RowMaximum maximum = row_maximum(x.data(), n);
      CHECK(maximum.valid);
      CHECK_EQ(maximum.index, i);
      CHECK_EQ(maximum.value, -0.5f);
    }
  }
  std::vector<float> zeros(static_cast<size_t>(n), -1.0f);
  zeros[3] = -0.0f;
  zeros.back() = 0.0f;  // equals the other zeros as a number
  CHECK_EQ(row_maximum(zeros.data(), n).index, 3);
}

TEST(what_is_no_distribution_is_invalid) {
  for (float bad : {std::nanf(""), -std::nanf(""), kInfinity}) {
    for (size_t i : {0u, 15u, 16u, 39u}) {
      std::vector<float> x(40, 0.5f);
      x[i] = bad;
      CHECK(!row_maximum(x.data(), 40).valid);
    }
  }
  std::vector<float> nothing(40, -kInfinity);
  CHECK(!row_maximum(nothing.data(), 40).valid);
  nothing[39] = -1e30f;
  CHECK(row_maximum(nothing.data(), 40).valid);
}

TEST(sums_are_right_and_in_blocks) {
  constexpr int64_t n = 2 * kSoftmaxBlock + 37;
  std::vector<float> x, out(n);
  for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(20 * uniform(1, i) - 10));
  float maximum = row_maximum(x.data(), n).value;
  double blocks[3], exact = 0;
  double total = exponentials(x.data(), n, maximum, 0.7f, out.data(), blocks);
  for (float v : x) exact += std::exp(0.7 * static_cast<double>(v - maximum));
  CHECK(std::fabs(total - exact) < 1e-6 * exact);
  CHECK_EQ(blocks[0] + blocks[1] + blocks[2], total);
  CHECK_EQ(exponentials(x.data(), n, maximum, 0.7f, nullptr, nullptr), total);
  for (size_t i : {0u, 1500u, 2084u}) CHECK_EQ(out[i], exp_float((x[i] - maximum) * 0.7f));
}

}  // namespace
}  // namespace wherry
