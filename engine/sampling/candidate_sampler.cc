#include "sampling/candidate_sampler.h"

#include <algorithm>

#include "sampling/elementary.h"
#include "sampling/rng.h"
#include "sampling/temperature.h"

namespace wherry {

namespace {

// The relative error of exponentials() (softmax.h): the 3e-7 of exp_float and the error of adding
// 64 floats.
constexpr double kOwnError = 5e-6;

bool cuts(const SamplingParams& params) {
  return params.top_k > 0 || params.top_p < 1 || params.min_p > 0;
}

// Draws from a row without truncation (draw.h); returns nothing if the token is not in the head.
std::optional<int64_t> draw_from_head(Truncation& kept, double mass, double u) {
  double head = 0;
  for (int64_t i = 0; i < Ranking::kFirst; ++i) head += kept.weight(i);
  double rest = u * std::max(mass, head);
  for (int64_t i = 0; i < Ranking::kFirst; ++i) {
    double w = kept.weight(i);
    if (rest < w) return i;
    rest -= w;
  }
  return std::nullopt;
}

}  // namespace

bool CandidateSampler::may_do(const SamplingInput& input, bool masked) {
  const SamplingParams& params = input.params;
  bool moved = masked || params.adjusts() ||
               (input.output_size() < params.min_tokens && !params.stop_ids.empty());
  if (moved) return false;
  if (params.temperature == 0) return true;
  return params.dynamic_range == 0 && params.mirostat_tau == 0 && params.top_n_sigma == 0 &&
         params.typical_p == 1 && params.xtc_probability == 0;
}

float CandidateSampler::scale(const SamplingInput& input, bool masked, int64_t count) {
  constexpr float kMost = 1000;  // the largest scale for which devices compute exponents
  const SamplingParams& params = input.params;
  bool enough = params.top_logprobs <= count && params.top_k < count;
  if (!may_do(input, masked) || !enough) return 0;
  if (params.temperature == 0) return 1;
  float scale = inverse_temperature(params, nullptr, 0, 0);
  return scale <= kMost ? scale : 0;
}

Choice CandidateSampler::choice(const SamplingParams& params, int64_t index) {
  if (params.temperature == 0) return {};
  double place = uniform(params.seed, static_cast<uint64_t>(index), Stream::kToken);
  return {static_cast<float>(place), params.top_k, params.top_p, params.min_p};
}

std::optional<Sample> CandidateSampler::sample(const SamplingInput& input,
                                               const Candidates& candidates) {
  const SamplingParams& params = input.params;
  bool enough =
      candidates.count >= std::max(1, params.top_logprobs) && candidates.count < candidates.vocab;
  if (!enough || !may_do(input, false)) return std::nullopt;
  std::optional<int64_t> chosen = 0;
  if (params.temperature > 0) {
    double error = candidates.relative_error + kOwnError;
    chosen = decide(input, candidates, candidates.scaled_total * (1 - error));
    if (chosen != decide(input, candidates, candidates.scaled_total * (1 + error))) chosen.reset();
  }
  if (!chosen) return std::nullopt;
  double log_total = log_double(candidates.total);
  auto logprob = [&](int64_t i) {
    return static_cast<float>(static_cast<double>(candidates.logits[i] - candidates.logits[0]) -
                              log_total);
  };
  Sample result;
  result.token = candidates.ids[*chosen];
  result.logprob = logprob(*chosen);
  for (int64_t i = 0; i < params.top_logprobs; ++i) {
    result.top.emplace_back(candidates.ids[i], logprob(i));
  }
  return result;
}

// Treats the candidates as a sorted row, so that ranks are indices.
std::optional<int64_t> CandidateSampler::decide(const SamplingInput& input,
                                                const Candidates& candidates, double mass) {
  const SamplingParams& params = input.params;
  if (params.top_k >= candidates.count) return std::nullopt;
  float maximum = candidates.logits[0];
  float scale = inverse_temperature(params, candidates.logits, candidates.count, maximum);
  double u = uniform(params.seed, static_cast<uint64_t>(input.output_size()), Stream::kToken);
  kept_.start(candidates.logits, candidates.count, maximum, scale, mass);
  if (!cuts(params)) {
    if (candidates.count < Ranking::kFirst) return std::nullopt;
    return draw_from_head(kept_, mass, u);
  }
  if (params.top_k > 0) kept_.top_k(params.top_k);
  if (params.top_p < 1) kept_.top_p(params.top_p);
  if (params.min_p > 0) kept_.min_p(params.min_p);
  if (kept_.has_tail()) return std::nullopt;  // truncation ends beyond the candidates
  return draw_.from(kept_, u).token;
}

}  // namespace wherry
