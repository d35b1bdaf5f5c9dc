#include "sampling/candidate_sampler.h"

#include <cmath>
#include <vector>

#include "sampling/ranking.h"
#include "sampling/softmax.h"
#include "testing/sampling.h"

namespace wherry {
namespace {

using testing::defaults;
using testing::random_logits;
using testing::SampledRequest;

// Computes the candidates of a row as a device does: its sums are wrong by up to `error`.
struct Device {
  Device(const std::vector<float>& x, float temperature, double error, uint64_t seed) {
    auto n = static_cast<int64_t>(x.size());
    rank(x.data(), n, 64, ids);
    for (int32_t id : ids) logits.push_back(x[static_cast<size_t>(id)]);
    double exact = 0, scaled = 0;
    for (float v : x) {
      double l = static_cast<double>(v) - static_cast<double>(logits[0]);
      exact += std::exp(l);
      if (temperature > 0) scaled += std::exp(l / static_cast<double>(temperature));
    }
    double wrong = 1 + error * (2 * uniform(seed, 0) - 1);
    candidates = {ids.data(),     logits.data(), static_cast<int64_t>(ids.size()), n, exact * wrong,
                  scaled * wrong, error};
  }

  std::vector<int32_t> ids;
  std::vector<float> logits;
  Candidates candidates;
};

// Returns a row that is peaked as a model's rows are: few likely tokens over a broad floor. Some
// logits are equal.
std::vector<float> model_row(uint64_t seed) {
  std::vector<float> x = random_logits(3000, seed, 6);
  for (uint64_t i = 0; i < 30; ++i) {
    auto at = static_cast<size_t>(3000 * uniform(seed + 1, i));
    x[at] += static_cast<float>(12 * uniform(seed + 2, i));
    if (seed % 4 == 0) x[at] = std::round(x[at]);
  }
  return x;
}

// Counts how many of 300 rows the candidates decide; each decided row must give the token that the
// whole row gives.
int decided(wherry_params params, double error, double spread = 0) {
  CandidateSampler sampler;
  int count = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<float> x = spread > 0 ? random_logits(3000, seed, spread) : model_row(10 * seed);
    params.seed = seed;
    SampledRequest request(params, 3000);
    Device device(x, params.temperature, error, seed);
    std::optional<Sample> actual = sampler.sample(request.input(), device.candidates);
    if (!actual) continue;
    ++count;
    Sample expected = request.sample(x);
    CHECK_EQ(actual->token, expected.token);
    CHECK(std::fabs(actual->logprob - expected.logprob) < -std::log1p(-error) + 1e-5);
    CHECK_EQ(actual->top.size(), expected.top.size());
    for (size_t i = 0; i < actual->top.size(); ++i) {
      CHECK_EQ(actual->top[i].first, expected.top[i].first);
    }
  }
  return count;
}

TEST(greedy_is_always_decided) {
  wherry_params params = defaults();
  params.temperature = 0;
  params.top_logprobs = 5;
  CHECK_EQ(decided(params, 0.5), 300);
}

TEST(top_k_needs_no_sum) {
  wherry_params params = defaults();
  params.top_k = 40;
  params.top_p = 0.9f;
  params.temperature = 1.3f;
  CHECK_EQ(decided(params, 0.5), 300);
  params.top_k = 64;  // tokens beyond the candidates may equal the last candidate
  CHECK_EQ(decided(params, 0), 0);
}

TEST(what_the_sum_decides_is_decided_where_it_can_be) {
  for (double error : {0.0, 1e-4, 1e-2}) {
    for (float temperature : {0.6f, 1.0f}) {
      for (float top_p : {1.0f, 0.9f, 0.3f}) {
        wherry_params params = defaults();
        params.temperature = temperature;
        params.top_p = top_p;
        int count = decided(params, error);
        CHECK(count > (error > 1e-3 ? 200 : 250));
        if (error == 0 && top_p < 1) CHECK(count > 280);
      }
    }
  }
}

TEST(min_p) {
  wherry_params params = defaults();
  params.min_p = 0.05f;
  CHECK(decided(params, 0.5) > 290);
  params.top_p = 0.95f;
  CHECK(decided(params, 1e-3) > 250);
}

TEST(flat_rows_need_the_full_row) {
  wherry_params params = defaults();
  // 64 candidates rarely decide among 3,000 tokens with similar logits.
  CHECK(decided(params, 1e-4, 1) < 30);
  params.top_p = 0.9f;
  CHECK_EQ(decided(params, 1e-4, 1), 0);
  params = defaults();
  params.min_p = 0.01f;
  CHECK_EQ(decided(params, 1e-4, 1), 0);
}

TEST(a_useless_sum_decides_little) {
  wherry_params params = defaults();
  int coarse = decided(params, 0.9), fine = decided(params, 1e-5);
  CHECK(coarse < fine);
}

TEST(what_only_a_full_row_can_say) {
  std::vector<wherry_params> all(8, defaults());
  all[0].top_n_sigma = 1;
  all[1].typical_p = 0.9f;
  all[2].xtc_probability = 0.1f;
  all[3].mirostat_tau = 3;
  all[4].dynamic_range = 0.1f;
  all[5].presence_penalty = 0.1f;
  all[6].dry_multiplier = 1;
  const int32_t stop = 7;
  all[7].stop_ids = &stop;
  all[7].n_stop_ids = 1;
  all[7].min_tokens = 1;
  for (const wherry_params& params : all) {
    SampledRequest request(params, 3000);
    CHECK(!CandidateSampler::may_do(request.input(), false));
    Device device(model_row(1), 1, 1e-4, 1);
    CHECK(!CandidateSampler().sample(request.input(), device.candidates));
  }
  SampledRequest plain(defaults(), 3000);
  CHECK(CandidateSampler::may_do(plain.input(), false));
  CHECK(!CandidateSampler::may_do(plain.input(), true));
}

}  // namespace
}  // namespace wherry
