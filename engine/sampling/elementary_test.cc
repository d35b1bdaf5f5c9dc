#include "sampling/elementary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/rng.h"
#include "testing/testing.h"

namespace wherry {
namespace {

double relative(double actual, double exact) {
  return std::fabs(actual - exact) / std::fabs(exact);
}

TEST(logarithm) {
  double worst = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    double x = std::ldexp(1 + uniform(1, i), static_cast<int>(i % 2000) - 1000);
    worst = std::max(worst, relative(log_double(x), std::log(x)));
    double near = 0.9 + 0.2 * uniform(2, i);
    CHECK(std::fabs(log_double(near) - std::log(near)) < 1e-16 + 1e-15 * std::fabs(near - 1));
  }
  CHECK(worst < 1e-14);
  CHECK_EQ(log_double(1), 0.0);
  double least = std::numeric_limits<double>::denorm_min();
  CHECK(relative(log_double(least), std::log(least)) < 1e-14);
}

TEST(exponential) {
  double worst = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    double x = 1400 * uniform(3, i) - 700;
    worst = std::max(worst, relative(exp_double(x), std::exp(x)));
  }
  CHECK(worst < 1e-14);
  CHECK_EQ(exp_double(0), 1.0);
  CHECK_EQ(exp_double(-701), 0.0);
  CHECK_EQ(exp_double(701), std::numeric_limits<double>::infinity());
}

TEST(integer_powers) {
  CHECK_EQ(power(1.75, 0), 1.0);
  CHECK_EQ(power(2, 10), 1024.0);
  CHECK_EQ(power(0.5, 3), 0.125);
}

}  // namespace
}  // namespace wherry
