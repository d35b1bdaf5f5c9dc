// Tests each sampling stage except temperature, top-k, top-p and min-p (sampler_test.cc) with
// single rows and many draws. tests/engine/test_sampling.py compares the stages with NumPy.
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
using Row = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns softmax(x / temperature) over the tokens for which `kept` holds, 0 for the others.
template <typename Kept>
std::vector<double> softmax(const Row& x, double temperature, Kept kept) {
  std::vector<double> p;
  for (size_t i = 0; i < x.size(); ++i) {
    p.push_back(kept(i) ? std::exp(static_cast<double>(x[i]) / temperature) : 0);
  }
  double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= total;
  return p;
}

std::vector<double> softmax(const Row& x, double temperature = 1) {
  return softmax(x, temperature, [](size_t) { return true; });
}

double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (double share : p) sum -= share > 0 ? share * std::log(share) : 0;
  return sum;
}

void check_distribution(wherry_params params, const Row& x, const std::vector<double>& expected) {
  Fixture fixture(params, static_cast<int64_t>(x.size()));
  testing::check_draws(expected, [&] { return fixture.next(x).token; });
}

int32_t greedy(wherry_params params, const Row& x, std::vector<int32_t> prompt,
               const std::vector<int32_t>& output) {
  params.temperature = 0;
  auto vocab = static_cast<int64_t>(x.size());
  return Fixture(params, vocab, std::move(prompt), output).sample(x).token;
}

TEST(top_n_sigma_keeps_what_is_near_the_maximum) {
  Row x = random_logits(300, 1, 4);
  for (size_t i : {3u, 50u, 51u, 200u, 299u}) x[i] += 4;
  double mean = 0, squares = 0;
  for (float v : x) mean += static_cast<double>(v) / 300;
  for (float v : x) squares += std::pow(static_cast<double>(v) - mean, 2) / 300;
  double least =
      static_cast<double>(*std::max_element(x.begin(), x.end())) - 1.5 * std::sqrt(squares);
  for (float temperature : {0.7f, 3.0f}) {  // the stage keeps the same tokens at any temperature
    wherry_params params = defaults();
    params.top_n_sigma = 1.5f;
    params.temperature = temperature;
    check_distribution(params, x, softmax(x, static_cast<double>(temperature), [&](size_t i) {
                         return static_cast<double>(x[i]) >= least;
                       }));
  }
}

TEST(typical_leaves_out_what_is_too_likely) {
  // A row of probabilities 0.3 and ten times 0.07; its entropy is near the surprise of the ten.
  Row x = {static_cast<float>(std::log(0.3))};
  x.insert(x.end(), 10, static_cast<float>(std::log(0.07)));
  wherry_params params = defaults();
  params.typical_p = 0.68f;
  check_distribution(params, x, softmax(x, 1, [](size_t i) { return i > 0; }));
  params.typical_p = 0.72f;  // 0.72 exceeds the ten's 0.7, so the most likely token is kept, too
  check_distribution(params, x, softmax(x));
}

TEST(xtc_excludes_all_but_the_last_of_the_likely) {
  Row x = random_logits(200, 5, 3);
  x[7] = 6.2f, x[90] = 6, x[150] = 5.8f;
  std::vector<double> all = softmax(x);
  CHECK(all[150] > 0.1);
  std::vector<double> without = softmax(x, 1, [](size_t i) { return i != 7 && i != 90; });
  for (float probability : {0.4f, 1.0f}) {
    wherry_params params = defaults();
    params.xtc_probability = probability;
    params.seed = 77;
    std::vector<double> expected;
    for (size_t i = 0; i < x.size(); ++i) {
      auto share = static_cast<double>(probability);
      expected.push_back(share * without[i] + (1 - share) * all[i]);
    }
    check_distribution(params, x, expected);
  }
}

TEST(xtc_leaves_a_single_likely_token) {
  Row x = random_logits(200, 5, 3);
  x[7] = 9;
  wherry_params params = defaults();
  params.xtc_probability = 1;
  check_distribution(params, x, softmax(x));
}

TEST(xtc_tosses_a_coin_of_its_own) {
  Row x = random_logits(100, 5, 4);
  wherry_params params = defaults();
  params.seed = 3;
  Fixture without(params, 100);
  params.xtc_probability = 0.5f;
  params.xtc_threshold = 0.01f;
  Fixture with(params, 100);
  int same = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    int32_t expected = without.next(x).token, actual = with.next(x).token;
    bool acts = uniform(3, i, Stream::kExclude) < 0.5;
    // If XTC does not act, the draw is the same as without XTC.
    if (!acts) CHECK_EQ(actual, expected);
    same += actual == expected;
  }
  CHECK(same > 150 && same < 300);
}

TEST(dynamic_temperature_follows_the_entropy) {
  for (double spread : {1.0, 6.0, 20.0}) {
    Row x = random_logits(80, 9, spread);
    x[5] = -kInfinity;
    double h = entropy(softmax(x)) / std::log(79.0);
    double temperature = 0.2 + (1.4 - 0.2) * std::pow(h, 1.5);
    wherry_params params = defaults();
    params.temperature = 0.8f;
    params.dynamic_range = 0.6f;
    params.dynamic_exponent = 1.5f;
    check_distribution(params, x, softmax(x, temperature));
  }
}

TEST(dynamic_temperature_may_reach_zero) {
  Row x = {-kInfinity, 3, -kInfinity};  // a distribution without entropy
  wherry_params params = defaults();
  params.temperature = 0.5f;
  params.dynamic_range = 0.5f;
  CHECK_EQ(Fixture(params, 3).sample(x).token, 1);
}

TEST(mirostat_keeps_the_surprise_at_its_target) {
  for (float tau : {1.5f, 3.0f, 5.0f}) {
    Row x = random_logits(2000, 4, 16);
    wherry_params params = defaults();
    params.mirostat_tau = tau;
    Fixture fixture(params, 2000);
    double sum = 0;
    for (int i = 0; i < 3000; ++i) sum += fixture.next(x).surprise;
    CHECK(std::fabs(sum / 3000 - static_cast<double>(tau)) < 0.05);
  }
}

TEST(mirostat_is_in_place_of_the_other_cuts) {
  Row x = random_logits(500, 4, 8);
  wherry_params params = defaults();
  params.mirostat_tau = 4;
  Fixture alone(params, 500);
  params.top_k = 1;
  params.top_p = 0.1f;
  params.xtc_probability = 1;
  Fixture with_others(params, 500);
  for (int i = 0; i < 100; ++i) CHECK_EQ(alone.next(x).token, with_others.next(x).token);
}

TEST(sampling_alone_changes_nothing) {
  Row x = random_logits(300, 8, 6);
  wherry_params params = defaults();
  params.mirostat_tau = 3;
  params.dry_multiplier = 1;
  params.frequency_penalty = 0.5f;
  Fixture once(params, 300), often(params, 300);
  for (int i = 0; i < 50; ++i) {
    for (int again = 0; again < 3; ++again) often.sample(x);  // simulates discarded draft tokens
    Sample expected = once.next(x), actual = often.next(x);
    CHECK_EQ(actual.token, expected.token);
    CHECK_EQ(actual.surprise, expected.surprise);
  }
}

TEST(a_given_token_does_not_steer_mirostat) {
  wherry_params params = defaults();
  params.mirostat_tau = 3;
  Fixture fixture(params, 10);
  fixture.append(4);
  CHECK_EQ(fixture.state().mu(), 6.0);
}

TEST(greedy_is_moved_by_penalties_and_by_nothing_that_draws) {
  Row x = {5, 4.9f, 1, 0};
  wherry_params params = defaults();
  params.xtc_probability = 1;
  params.xtc_threshold = 0.01f;
  params.typical_p = 0.05f;
  params.dynamic_range = 2;
  params.mirostat_tau = 1;
  CHECK_EQ(greedy(params, x, {3}, {}), 0);
  params.presence_penalty = 1;
  CHECK_EQ(greedy(params, x, {3}, {0}), 1);
}

TEST(bad_words_forbid_what_would_complete_them) {
  const int32_t words[] = {0, /**/ 2, 3, 1, /**/ 7, 7};
  const size_t lengths[] = {1, 3, 2};
  wherry_params params = defaults();
  params.bad_words = words;
  params.bad_word_lengths = lengths;
  params.n_bad_words = 3;
  Row x = {9, 8, 7, 6, 5, 4, 3, 10};
  CHECK_EQ(greedy(params, x, {4}, {2}), 7);
  CHECK_EQ(greedy(params, x, {4}, {7}), 1);     // forbids the bad word 7 7
  CHECK_EQ(greedy(params, x, {4}, {7, 5}), 7);  // token 7 is allowed again
  x[7] = 0;
  CHECK_EQ(greedy(params, x, {4}, {2}), 1);
  CHECK_EQ(greedy(params, x, {4}, {2, 3}), 2);
  CHECK_EQ(greedy(params, x, {2}, {3}), 2);  // the repetition starts in the prompt
  CHECK_EQ(greedy(params, x, {3}, {}), 1);   // the text is shorter than the bad word
}

TEST(bad_words_out_of_the_vocabulary_are_refused) {
  const int32_t words[] = {3, 8};
  const size_t lengths[] = {2};
  wherry_params params = defaults();
  params.bad_words = words;
  params.bad_word_lengths = lengths;
  params.n_bad_words = 1;
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, checked_params(params, 8)), "bad word 0");
}

TEST(what_is_not_allowed_is_forbidden) {
  const int32_t ids[] = {40, 3};
  wherry_params params = defaults();
  params.allowed = ids;
  params.n_allowed = 2;
  Row x = random_logits(70, 3, 4);
  check_distribution(params, x, softmax(x, 1, [](size_t i) { return i == 3 || i == 40; }));
  std::vector<uint32_t> mask = {0, 1u << 8, 0};  // a grammar may forbid more tokens
  CHECK_EQ(Fixture(params, 70).sample(x, mask.data()).token, 40);
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, checked_params(params, 40)), "token 40");
}

TEST(stop_ids_wait_for_min_tokens) {
  const int32_t stops[] = {2, 900};  // 900 is a token that the model does not have
  wherry_params params = defaults();
  params.stop_ids = stops;
  params.n_stop_ids = 2;
  params.min_tokens = 2;
  Row x = {1, 2, 9};
  CHECK_EQ(greedy(params, x, {0}, {}), 1);
  CHECK_EQ(greedy(params, x, {0}, {0}), 1);
  CHECK_EQ(greedy(params, x, {0}, {0, 0}), 2);
}

TEST(dry_costs_more_the_longer_the_repetition) {
  wherry_params params = defaults();
  params.dry_multiplier = 1;
  params.dry_base = 2;
  Row x(10, 0);
  x[5] = 3.5f;
  // Token 5 costs 1 * 2^(3 - 2) after the last three tokens, and 4 after four of them.
  CHECK_EQ(greedy(params, x, {1, 2, 3, 4, 5, 9, 2, 3}, {4}), 5);
  CHECK_EQ(greedy(params, x, {1, 2, 3, 4, 5, 9, 1, 2, 3}, {4}), 0);
  const int32_t breakers[] = {2};
  params.dry_breakers = breakers;
  params.n_dry_breakers = 1;
  CHECK_EQ(greedy(params, x, {1, 2, 3, 4, 5, 9, 1, 2, 3}, {4}), 5);
}

TEST(dry_leaves_what_must_come) {
  std::vector<int32_t> text(500, 1);
  wherry_params params = defaults();
  params.dry_multiplier = 1e30f;
  params.dry_base = 1e30f;
  CHECK_EQ(greedy(params, {-kInfinity, 1}, text, {}), 1);
}

// DRY compares at most 4,096 places, the newest first, so its time is bounded for texts of any
// length.
TEST(dry_looks_at_a_bounded_number_of_places) {
  std::vector<int32_t> text = {1, 2, 3, 4};
  for (int i = 0; i < 4000; ++i) text.insert(text.end(), {5 + i % 3, 2, 3, 8});
  text.insert(text.end(), {1, 2, 3});
  wherry_params params = defaults();
  params.dry_multiplier = 1;
  SamplingParams checked = checked_params(params, 10);
  auto find = [&] {
    Repetitions repetitions;
    for (size_t i = 0; i < text.size(); ++i) repetitions.add(checked, text, i);
    return repetitions.find(checked, text);
  };
  CHECK(find().at(4) == 3);
  CHECK(find().at(8) == 2);
  for (int i = 0; i < 200; ++i) text.insert(text.end(), {5, 2, 3, 8});
  text.insert(text.end(), {1, 2, 3});
  CHECK(find().count(4) == 0);
  CHECK(find().at(8) == 2);
}

}  // namespace
}  // namespace wherry
