#include "model/row_sampler.h"

#include <cmath>
#include <vector>

#include "testing/fake_candidates.h"
#include "testing/sampling.h"

namespace wherry {
namespace {

using testing::defaults;
using testing::random_logits;
using testing::SampledRequest;

constexpr int64_t kVocab = 2000;

// A fake session with one row, and the candidates that a device would return for it.
class OneRow : public Session {
 public:
  OneRow(std::vector<float> x, const FakeOptions& options, float scale)
      : x_(std::move(x)),
        candidates_(x_.data(), static_cast<int64_t>(x_.size()), options, scale),
        has_candidates_(scale > 0) {}

  Rows collect() override {
    Rows rows{1, static_cast<int64_t>(x_.size()), {}};
    if (has_candidates_) rows.candidates.push_back(candidates_.view());
    return rows;
  }
  const float* row(int64_t) override {
    ++fetched;
    return x_.data();
  }

  void launch(const Batch&, Entry) override {}
  void copy_page(int, int32_t, int32_t) override {}
  void copy_slot(int32_t, int32_t) override {}
  void clear_slot(int32_t) override {}
  size_t page_bytes(int) const override { return 0; }
  void read_page(int, int32_t, char*) override {}
  void write_page(int, int32_t, const char*) override {}

  int fetched = 0;

 private:
  std::vector<float> x_;
  FakeCandidates candidates_;
  bool has_candidates_;
};

// Returns a flat or peaked row; some rows have equal logits, -inf, or both signs of zero.
std::vector<float> random_row(uint64_t seed) {
  std::vector<float> x = random_logits(kVocab, seed, 4 + static_cast<double>(seed % 5) * 4);
  for (uint64_t i = 0; i < seed % 40; ++i) {
    auto at = static_cast<size_t>(kVocab * uniform(seed + 1, i));
    x[at] += static_cast<float>(12 * uniform(seed + 2, i));
  }
  if (seed % 4 == 0) {
    for (float& v : x) v = std::round(v * 4) / 4;
  }
  if (seed % 7 == 0) {
    for (size_t i = 0; i < x.size(); i += 3) x[i] = -INFINITY;
  }
  if (seed % 11 == 0) x[seed % kVocab] = -0.0f;
  return x;
}

// Returns random parameters; each parameter is enabled in some of the rounds.
wherry_params random_params(uint64_t seed) {
  uint64_t next = 0;
  auto dice = [&] { return static_cast<float>(uniform(seed, next++)); };
  wherry_params params = defaults();
  params.seed = seed;
  params.temperature = dice() < 0.2f ? 0 : 0.2f + 1.3f * dice();
  if (dice() < 0.3f) params.top_k = 1 + static_cast<int32_t>(150 * dice());
  if (dice() < 0.5f) params.top_p = 0.05f + 0.9f * dice();
  if (dice() < 0.3f) params.min_p = 0.3f * dice();
  if (dice() < 0.3f) params.top_logprobs = static_cast<int32_t>(20 * dice());
  if (dice() < 0.05f) params.typical_p = 0.8f;
  if (dice() < 0.05f) params.dynamic_range = 0.3f;
  if (dice() < 0.05f) params.mirostat_tau = 3;
  if (dice() < 0.05f) params.xtc_probability = 0.5f;
  if (dice() < 0.05f) params.top_n_sigma = 1.5f;
  if (dice() < 0.05f) params.repetition_penalty = 1.2f;
  return params;
}

void check_same(const Sample& sample, const Sample& expected, double error) {
  CHECK_EQ(sample.token, expected.token);
  CHECK(std::fabs(sample.logprob - expected.logprob) <= error);
  CHECK_EQ(sample.top.size(), expected.top.size());
  for (size_t i = 0; i < sample.top.size(); ++i) {
    CHECK_EQ(sample.top[i].first, expected.top[i].first);
    CHECK(std::fabs(sample.top[i].second - expected.top[i].second) <= error);
  }
}

TEST(tokens_are_those_of_full_rows) {
  FakeOptions options;
  options.candidates = 128;
  RowSampler sampler;
  uint64_t requests = 0;
  for (double error : {0.0, 1e-5, 1e-3}) {
    options.error = error;
    for (uint64_t seed = 0; seed < 2000; ++seed, ++requests) {
      std::vector<float> x = random_row(seed);
      SampledRequest request(random_params(seed), kVocab, {0}, {1, 2});
      float scale = CandidateSampler::scale(request.input(), false, options.candidates);
      OneRow session(x, options, scale);
      uint64_t full_rows = sampler.counts().full_rows;
      Sample sample = sampler.sample(request.input(), session, session.collect(), 0, nullptr);
      CHECK_EQ(static_cast<uint64_t>(session.fetched), sampler.counts().full_rows - full_rows);
      check_same(sample, request.sample(x), 2 * error + 1e-5);
    }
  }
  CHECK_EQ(sampler.counts().candidates + sampler.counts().full_rows, requests);
  CHECK(sampler.counts().candidates > requests / 3);
  CHECK(sampler.counts().full_rows > requests / 10);
}

TEST(a_mask_takes_the_full_row) {
  FakeOptions options;
  options.candidates = 128;
  wherry_params params = defaults();
  params.temperature = 0;
  SampledRequest request(params, kVocab);
  std::vector<float> x = random_row(3);
  std::vector<uint32_t> mask((kVocab + 31) / 32, 0);
  mask[1] = 1u << 5;
  OneRow session(x, options, 1);
  RowSampler sampler;
  Sample sample = sampler.sample(request.input(), session, session.collect(), 0, mask.data());
  CHECK_EQ(sample.token, 37);
  CHECK_EQ(session.fetched, 1);
}

TEST(scales_are_requested_where_they_can_do) {
  auto scale = [](const wherry_params& params, bool masked) {
    SampledRequest request(params, kVocab);
    return CandidateSampler::scale(request.input(), masked, 128);
  };
  wherry_params params = defaults();
  params.temperature = 0.5f;
  CHECK_EQ(scale(params, false), 2.0f);
  CHECK_EQ(scale(params, true), 0.0f);
  params.temperature = 0;
  CHECK_EQ(scale(params, false), 1.0f);
  params.temperature = 1e-4f;  // the scale is beyond the range of the device's exponents
  CHECK_EQ(scale(params, false), 0.0f);
  params = defaults();
  params.top_k = 128;
  CHECK_EQ(scale(params, false), 0.0f);
  params.top_k = 127;
  CHECK_EQ(scale(params, false), 1.0f);
  params.presence_penalty = 0.1f;
  CHECK_EQ(scale(params, false), 0.0f);
}

}  // namespace
}  // namespace wherry
