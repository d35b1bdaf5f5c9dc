#include "sampling/elementary.h"

#include <cstring>
#include <limits>

namespace wherry {

namespace {

// The natural logarithm of 2, rounded to 33 bits so that k * kLn2High is exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;  // ln 2 - kLn2High

double bits_to_double(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Returns 2^k for -1022 <= k <= 1023.
double power_of_two(int64_t k) { return bits_to_double((k + 1023) << 52); }

}  // namespace

// Splits x = 2^k m with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s) with s = (m - 1) / (m + 1) is
// computed by its series, because |s| < 0.172.
double log_double(double x) {
  int64_t k = 0;
  if (x < std::numeric_limits<double>::min()) {  // scales subnormal numbers up first
    x *= 0x1p54;
    k = -54;
  }
  int64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  k += (bits >> 52) - 1023;
  double m = bits_to_double((bits & 0xfffffffffffff) | (int64_t{1023} << 52));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++k;
  }
  double s = (m - 1) / (m + 1), square = s * s, series = 0;
  for (int term = 23; term >= 3; term -= 2) series = (series + 1.0 / term) * square;
  auto shift = static_cast<double>(k);
  return shift * kLn2High + (2 * s + (2 * s * series + shift * kLn2Low));
}

// Splits x = k ln 2 + r with |r| <= ln 2 / 2; then e^x = 2^k e^r, and e^r is computed by its Taylor
// series.
double exp_double(double x) {
  if (x < -700) return 0;
  if (x > 700) return std::numeric_limits<double>::infinity();
  constexpr double kLog2E = 1.44269504088896340736;
  // 1.5 * 2^52: adding it rounds to the nearest integer.
  constexpr double kRound = 6755399441055744.0;
  double shifted = x * kLog2E + kRound;
  double k = shifted - kRound;
  double r = (x - k * kLn2High) - k * kLn2Low;
  double series = 1;
  for (int term = 14; term >= 1; --term) series = 1 + series * r / term;
  return series * power_of_two(static_cast<int64_t>(k));
}

double power(double x, int64_t n) {
  double result = 1;
  for (int64_t i = 0; i < n; ++i) result *= x;
  return result;
}

}  // namespace wherry
