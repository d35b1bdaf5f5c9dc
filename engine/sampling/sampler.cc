#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampling/logprobs.h"
#include "sampling/ranking.h"
#include "sampling/rng.h"
#include "sampling/softmax.h"
#include "support/error.h"

namespace wherry {

namespace {

constexpr int64_t kFirstCandidates = 64;  // covers most nuclei
constexpr int64_t kWidening = 8;

float penalised(float logit, int32_t count, const SamplingParams& params) {
  float x = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  if (count > 0)
    x -= params.presence_penalty + static_cast<float>(count) * params.frequency_penalty;
  return x;
}

float inverse_of(float temperature) {
  return std::min(1 / temperature, std::numeric_limits<float>::max());  // 0 * inf would be NaN
}

}  // namespace

Sample StandardSampler::sample(const SamplingInput& input, const float* logits, int64_t vocab,
                               const uint32_t* mask) {
  const SamplingParams& params = input.params;
  RowMaximum raw = row_maximum(logits, vocab);
  if (!raw.valid) {
    throw Error(WHERRY_INTERNAL,
                concat("the model's logits for token ", input.tokens.size(),
                       " hold NaN or infinity: the weights or the compiled model are damaged"));
  }
  Logprobs logprobs(logits, vocab, raw.value);
  const float* x = adjust(input, logits, vocab, mask);
  RowMaximum best = x == logits ? raw : row_maximum(x, vocab);
  if (!best.valid) throw Error(WHERRY_INTERNAL, "mask, bias and penalties leave no token possible");
  Sample result;
  result.token = params.temperature == 0 ? best.index : draw(input, x, vocab, best.value);
  result.logprob = logprobs.of(result.token);
  result.top = logprobs.top(params.top_logprobs);
  return result;
}

const float* StandardSampler::adjust(const SamplingInput& input, const float* logits, int64_t vocab,
                                     const uint32_t* mask) {
  const SamplingParams& params = input.params;
  if (params.bias.empty() && !params.penalises() && mask == nullptr) return logits;
  adjusted_.assign(logits, logits + vocab);
  for (const auto& [id, value] : params.bias) adjusted_[static_cast<size_t>(id)] += value;
  for (int64_t i = 0; mask != nullptr && i < vocab; ++i) {
    bool possible = (mask[i / 32] >> (i % 32) & 1) != 0;
    if (!possible) adjusted_[static_cast<size_t>(i)] = -std::numeric_limits<float>::infinity();
  }
  for (const auto& [id, count] : input.state.counts()) {
    float& x = adjusted_[static_cast<size_t>(id)];
    x = penalised(x, count, params);
  }
  return adjusted_.data();
}

int32_t StandardSampler::draw(const SamplingInput& input, const float* x, int64_t vocab,
                              float maximum) {
  const SamplingParams& params = input.params;
  double u = uniform(params.seed, static_cast<uint64_t>(input.output_size()));
  float scale = inverse_of(params.temperature);
  if (params.top_k > 0 || params.top_p < 1) {
    // top-k needs the total of its own tokens only
    double total = params.top_k > 0 ? 0 : exponentials(x, vocab, maximum, scale, nullptr, nullptr);
    return draw_from_likeliest(u, params, x, vocab, maximum, scale, total);
  }
  weights_.resize(static_cast<size_t>(vocab));
  block_sums_.resize(static_cast<size_t>((vocab + kSoftmaxBlock - 1) / kSoftmaxBlock));
  double total = exponentials(x, vocab, maximum, scale, weights_.data(), block_sums_.data());
  return draw_from_all(u, params.min_p, vocab, total);
}

int32_t StandardSampler::draw_from_all(double u, float min_p, int64_t vocab, double total) {
  if (min_p > 0) {  // the likeliest token's weight is 1
    total = 0;
    for (size_t b = 0; b < block_sums_.size(); ++b) {
      size_t end = std::min((b + 1) * kSoftmaxBlock, static_cast<size_t>(vocab));
      block_sums_[b] = 0;
      for (size_t i = b * kSoftmaxBlock; i < end; ++i) {
        if (weights_[i] < min_p) weights_[i] = 0;
        block_sums_[b] += static_cast<double>(weights_[i]);
      }
      total += block_sums_[b];
    }
  }
  double rest = u * total;
  size_t b = 0;
  while (b + 1 < block_sums_.size() && rest >= block_sums_[b]) rest -= block_sums_[b++];
  while (block_sums_[b] <= 0) --b;  // rounding led past the last block with any weight
  size_t end = std::min((b + 1) * kSoftmaxBlock, static_cast<size_t>(vocab));
  size_t chosen = 0;
  for (size_t i = b * kSoftmaxBlock; i < end; ++i) {
    auto weight = static_cast<double>(weights_[i]);
    if (weight > 0) chosen = i;
    if (rest < weight) break;
    rest -= weight;
  }
  return static_cast<int32_t>(chosen);
}

int32_t StandardSampler::draw_from_likeliest(double u, const SamplingParams& params, const float* x,
                                             int64_t vocab, float maximum, float scale,
                                             double total) {
  auto weight = [&](int32_t id) {
    return static_cast<double>(exp_float((x[id] - maximum) * scale));
  };
  int64_t k = params.top_k > 0 ? params.top_k : kFirstCandidates;
  size_t kept = 0;
  double mass = 0;
  for (;; k *= kWidening) {
    k = std::min(k, vocab);
    rank(x, vocab, k, ids_);
    if (params.top_k > 0) {
      total = 0;
      for (int32_t id : ids_) total += weight(id);
    }
    for (kept = 0, mass = 0; kept < ids_.size() && mass < params.top_p * total; ++kept) {
      double w = weight(ids_[kept]);
      if (kept > 0 && w < params.min_p) break;
      mass += w;
    }
    bool whole = kept < ids_.size() || mass >= params.top_p * total;
    if (whole || params.top_k > 0 || k == vocab) break;
  }
  double rest = u * mass;
  for (size_t i = 0; i + 1 < kept; ++i) {
    double w = weight(ids_[i]);
    if (rest < w) return ids_[i];
    rest -= w;
  }
  return ids_[kept - 1];
}

}  // namespace wherry
