#include "sampling/logprobs.h"

#include <cmath>
#include <limits>

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(a_known_token_has_its_share) {
  const std::vector<float> x = {1, 3, -2, 3, 0.5f};
  double total = 0;
  for (float v : x) total += std::exp(static_cast<double>(v));
  for (int32_t token = 0; token < 5; ++token) {
    ScoredToken actual = score(x.data(), 5, token, 2);
    double exact = static_cast<double>(x[static_cast<size_t>(token)]) - std::log(total);
    CHECK(std::fabs(actual.logprob - exact) < 1e-6);
    CHECK_EQ(actual.top.size(), 2u);
    CHECK_EQ(actual.top[0].first, 1);
    CHECK_EQ(actual.top[1].first, 3);
    CHECK_EQ(actual.top[0].second, actual.top[1].second);
  }
  CHECK_EQ(score(x.data(), 5, 0, 0).top.size(), 0u);
  CHECK_EQ(score(x.data(), 5, 0, 20).top.size(), 5u);
}

TEST(an_impossible_token_has_minus_infinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1, -infinity, 2};
  CHECK_EQ(score(x.data(), 3, 1, 0).logprob, -infinity);
}

TEST(a_row_that_is_no_distribution) {
  const std::vector<float> x = {1, std::nanf(""), 2};
  CHECK_CONTAINS(ERROR_OF(WHERRY_INTERNAL, score(x.data(), 3, 1, 0)), "NaN");
}

}  // namespace
}  // namespace wherry
