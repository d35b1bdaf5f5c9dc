#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "testing/sampling.h"

namespace wherry {
namespace {

using testing::defaults;
using testing::random_logits;
using Fixture = testing::SampledRequest;

// Computes the reference distribution for the parameters by full sorting in double precision.
std::vector<double> reference(const std::vector<float>& x, const wherry_params& p) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  if (p.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(p.top_k)));
  std::vector<double> w;
  for (size_t i : order) w.push_back(std::exp((double{x[i]} - x[order[0]]) / p.temperature));
  double total = std::accumulate(w.begin(), w.end(), 0.0), mass = 0;
  std::vector<double> result(x.size(), 0);
  for (size_t i = 0; i < order.size() && mass < double{p.top_p} * total; ++i) {
    mass += w[i];
    if (w[i] >= p.min_p) result[order[i]] = w[i];
  }
  double kept = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& v : result) v /= kept;
  return result;
}

void check_distribution(wherry_params params, const std::vector<float>& x) {
  Fixture fixture(params, static_cast<int64_t>(x.size()));
  testing::check_draws(reference(x, params), [&] { return fixture.next(x).token; });
}

TEST(temperature) {
  for (float temperature : {0.5f, 1.0f, 2.0f}) {
    wherry_params params = defaults();
    params.temperature = temperature;
    params.seed = 3;
    check_distribution(params, random_logits(100, 1, 6));
  }
}

TEST(a_vocabulary_of_several_blocks) {
  std::vector<float> x(5000, -std::numeric_limits<float>::infinity());
  for (size_t i : {7u, 1023u, 1024u, 2500u, 4999u}) x[i] = static_cast<float>(i % 3);
  check_distribution(defaults(), x);
}

TEST(top_k) {
  wherry_params params = defaults();
  params.top_k = 7;
  check_distribution(params, random_logits(500, 2, 4));
}

TEST(top_p) {
  for (float top_p : {0.05f, 0.5f, 0.95f}) {
    wherry_params params = defaults();
    params.top_p = top_p;
    check_distribution(params, random_logits(300, 3, 8));
  }
}

TEST(top_p_of_a_flat_distribution_widens_the_selection) {
  wherry_params params = defaults();
  params.top_p = 0.9f;
  check_distribution(params, random_logits(1500, 4, 0.5));
}

TEST(min_p) {
  wherry_params params = defaults();
  params.min_p = 0.2f;
  check_distribution(params, random_logits(300, 5, 8));
}

TEST(all_filters_together) {
  wherry_params params = defaults();
  params.temperature = 1.3f;
  params.top_k = 40;
  params.top_p = 0.8f;
  params.min_p = 0.1f;
  check_distribution(params, random_logits(400, 6, 9));
}

TEST(min_p_after_top_k) {
  wherry_params params = defaults();
  params.top_k = 100;
  params.min_p = 0.3f;
  check_distribution(params, random_logits(400, 7, 9));
}

TEST(of_equal_logits_top_k_keeps_the_lowest_ids) {
  for (size_t vocab : {8u, 1000u}) {  // a row of 8 is sorted, a row of 1,000 is scanned
    std::vector<float> x(vocab, 1);
    wherry_params params = defaults();
    params.top_k = 2;
    params.top_logprobs = 2;
    Sample sample = Fixture(params, static_cast<int64_t>(vocab)).sample(x);
    CHECK(sample.token < 2);
    CHECK_EQ(sample.top[0].first, 0);
    CHECK_EQ(sample.top[1].first, 1);
  }
}

TEST(the_seed_alone_decides) {
  auto x = random_logits(1000, 8, 3);
  auto draw = [&](uint64_t seed) {
    wherry_params params = defaults();
    params.seed = seed;
    Fixture fixture(params, 1000);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 20; ++i) {
      tokens.push_back(fixture.next(x).token);
    }
    return tokens;
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
  // The tokens come from a second implementation (tests/engine/sampling_oracle.py); every platform
  // must draw them.
  const std::vector<int32_t> known = {472, 154, 520, 553, 818, 997, 61, 614, 762, 736, 888, 858};
  std::vector<int32_t> first = draw(2024);
  first.resize(known.size());
  for (size_t i = 0; i < known.size(); ++i) CHECK_EQ(first[i], known[i]);
}

TEST(greedy_takes_the_lowest_of_equals) {
  wherry_params params = defaults();
  params.temperature = 0;
  std::vector<float> x(100, 0);
  x[40] = x[41] = x[99] = 2;
  CHECK_EQ(Fixture(params, 100).sample(x).token, 40);
}

TEST(bias_moves_and_forbids) {
  wherry_params params = defaults();
  params.temperature = 0;
  const int32_t ids[] = {3, 9};
  const float values[] = {-std::numeric_limits<float>::infinity(), 5};
  params.bias_ids = ids;
  params.bias_values = values;
  params.n_bias = 2;
  std::vector<float> x(20, 0);
  x[3] = 50;
  Sample sample = Fixture(params, 20).sample(x);
  CHECK_EQ(sample.token, 9);
  // The reported logprob is that of the model's own distribution.
  CHECK(std::fabs(sample.logprob - (-50 - std::log(1 + 19 * std::exp(-50.0)))) < 1e-4);
}

TEST(a_mask_forbids) {
  wherry_params params = defaults();
  params.temperature = 0;
  std::vector<float> x(70, 0);
  x[3] = 50;
  const uint32_t mask[] = {~8u, ~0u, 1u << 5};
  x[69] = x[68] = 1;
  CHECK_EQ(Fixture(params, 70).sample(x, mask).token, 69);
  const uint32_t nothing[3] = {};
  CHECK_CONTAINS(ERROR_OF(WHERRY_INTERNAL, Fixture(params, 70).sample(x, nothing)), "possible");
}

TEST(penalties) {
  std::vector<float> x = {4, 3.9f, 3.25f, -1};
  wherry_params params = defaults();
  params.temperature = 0;
  // The penalty divides logits of prompt and output tokens: 4 -> 2, 3.25 -> 1.625.
  params.repetition_penalty = 2;
  CHECK_EQ(Fixture(params, 4, {0}, {2}).sample(x).token, 1);
  params = defaults();
  params.temperature = 0;
  params.presence_penalty = 0.3f;  // subtracts once for each token of the output, not of the prompt
  CHECK_EQ(Fixture(params, 4, {1}, {0, 0}).sample(x).token, 1);
  CHECK_EQ(Fixture(params, 4, {0}, {2}).sample(x).token, 0);
  params = defaults();
  params.temperature = 0;
  // Subtracts for each occurrence in the output: 4 - 0.6, 3.9 - 0.4.
  params.frequency_penalty = 0.2f;
  CHECK_EQ(Fixture(params, 4, {3}, {0, 0, 0, 1, 1}).sample(x).token, 1);
}

TEST(log_probabilities) {
  auto x = random_logits(3000, 11, 12);
  wherry_params params = defaults();
  params.temperature = 0.3f;
  params.top_logprobs = 20;
  Sample sample = Fixture(params, 3000).sample(x);
  double total = 0;
  for (float v : x) total += std::exp(static_cast<double>(v));
  auto exact = [&](int32_t id) { return x[static_cast<size_t>(id)] - std::log(total); };
  CHECK(std::fabs(sample.logprob - exact(sample.token)) < 1e-5);
  CHECK_EQ(sample.top.size(), 20u);
  std::vector<float> sorted = x;
  std::sort(sorted.rbegin(), sorted.rend());
  for (size_t i = 0; i < 20; ++i) {
    CHECK_EQ(x[static_cast<size_t>(sample.top[i].first)], sorted[i]);
    CHECK(std::fabs(sample.top[i].second - exact(sample.top[i].first)) < 1e-5);
  }
}

TEST(more_alternatives_than_tokens) {
  wherry_params params = defaults();
  params.top_logprobs = 20;
  params.top_k = 50;
  CHECK_EQ(Fixture(params, 3).sample({1, 2, 3}).top.size(), 3u);
}

TEST(logits_that_are_no_distribution) {
  for (float temperature : {0.0f, 1.0f}) {
    wherry_params params = defaults();
    params.temperature = temperature;
    Fixture fixture(params, 3);
    CHECK_CONTAINS(ERROR_OF(WHERRY_INTERNAL, fixture.sample({1, std::nanf(""), 3})), "NaN");
    ERROR_OF(WHERRY_INTERNAL, fixture.sample({1, std::numeric_limits<float>::infinity(), 3}));
  }
}

TEST(a_temperature_close_to_zero_is_greedy) {
  wherry_params params = defaults();
  params.temperature = 1e-42f;
  params.top_p = 0.9f;
  CHECK_EQ(Fixture(params, 3).sample({1, 3, 2}).token, 1);
  params.top_p = 1;
  CHECK_EQ(Fixture(params, 3).sample({1, 3, 2}).token, 1);
}

}  // namespace
}  // namespace wherry
