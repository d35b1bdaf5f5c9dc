#include "sampling/rng.h"

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(splitmix64_is_the_published_generator) {
  // The first outputs of the reference implementation for the seed 1234567,
  // https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
  const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                               4593380528125082431u, 16408922859458223821u};
  for (uint64_t i = 0; i < 5; ++i) CHECK_EQ(splitmix64(1234567, i), expected[i]);
}

TEST(uniform_fills_the_interval) {
  constexpr int kBins = 64, kDraws = 64000;
  int counts[kBins] = {};
  for (uint64_t i = 0; i < kDraws; ++i) {
    double u = uniform(7, i);
    CHECK(u >= 0 && u < 1);
    ++counts[static_cast<int>(u * kBins)];
  }
  double chi2 = 0;
  for (int count : counts) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
  CHECK(chi2 < 103.4);  // 0.1% quantile for 63 degrees of freedom
}

TEST(seeds_one_increment_apart_do_not_overlap) {
  uint64_t seed = 5;
  for (uint64_t i = 0; i < 100; ++i) {
    CHECK(uniform(seed + 0x9E3779B97F4A7C15u, i) != uniform(seed, i + 1));
  }
}

}  // namespace
}  // namespace wherry
