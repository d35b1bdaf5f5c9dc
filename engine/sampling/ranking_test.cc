#include "sampling/ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sampling/rng.h"
#include "testing/testing.h"

namespace wherry {
namespace {

// Returns a row of only 40 different values, so that many are equal.
std::vector<float> row(int64_t n, uint64_t seed) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(static_cast<int>(40 * uniform(seed, static_cast<uint64_t>(i)))));
  }
  x[static_cast<size_t>(n / 2)] = -std::numeric_limits<float>::infinity();
  return x;
}

std::vector<int32_t> sorted(const std::vector<float>& x) {
  std::vector<int32_t> ids(x.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)];
  });
  return ids;
}

TEST(the_largest_in_order) {
  std::vector<int32_t> ids;
  for (int64_t n : {1, 7, 256, 1000, 5003}) {
    std::vector<float> x = row(n, static_cast<uint64_t>(n));
    std::vector<int32_t> all = sorted(x);
    for (int64_t k : {0, 1, 2, 63, 64, 300, 6000}) {
      rank(x.data(), n, k, ids);
      std::vector<int32_t> expected(all.begin(), all.begin() + std::min(k, n));
      CHECK(ids == expected);
    }
  }
}

TEST(a_ranking_goes_as_far_as_requested) {
  Ranking ranking;
  for (int64_t n : {3, 64, 5003}) {
    std::vector<float> x = row(n, 9);
    std::vector<int32_t> all = sorted(x);
    ranking.start(x.data(), n);
    CHECK_EQ(ranking.known(), 0);
    for (int64_t i = 0; i < n; ++i) {
      CHECK(ranking.has(i));
      CHECK_EQ(ranking.id(i), all[static_cast<size_t>(i)]);
      if (i == 0) CHECK(ranking.known() == std::min<int64_t>(n, 64));
    }
    CHECK(!ranking.has(n));
  }
}

}  // namespace
}  // namespace wherry
