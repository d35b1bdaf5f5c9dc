#include "sampling/adjustment.h"

#include <algorithm>
#include <limits>

#include "sampling/dry.h"
#include "support/error.h"

namespace wherry {

namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

float penalised(float logit, int32_t count, const SamplingParams& params) {
  float x = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  if (count > 0)
    x -= params.presence_penalty + static_cast<float>(count) * params.frequency_penalty;
  return x;
}

void forbid_unmasked(const uint32_t* mask, std::vector<float>& x) {
  for (size_t start = 0; start < x.size(); start += 32) {
    uint32_t bits = mask[start / 32];
    if (bits == ~0u) continue;
    size_t end = std::min(start + 32, x.size());
    for (size_t i = start; i < end; ++i, bits >>= 1) x[i] = (bits & 1) != 0 ? x[i] : kForbidden;
  }
}

bool ends_with(const std::vector<int32_t>& tokens, const std::vector<int32_t>& word) {
  size_t n = word.size() - 1;  // number of the word's tokens before its last one
  return n <= tokens.size() &&
         std::equal(word.begin(), word.end() - 1, tokens.end() - static_cast<int64_t>(n));
}

void forbid_bad_words(const SamplingInput& input, std::vector<float>& x) {
  for (const std::vector<int32_t>& word : input.params.bad_words) {
    if (ends_with(input.tokens, word)) x[static_cast<size_t>(word.back())] = kForbidden;
  }
}

void forbid_stops(const SamplingInput& input, std::vector<float>& x) {
  for (int32_t id : input.params.stop_ids) {
    if (id >= 0 && static_cast<size_t>(id) < x.size()) x[static_cast<size_t>(id)] = kForbidden;
  }
}

}  // namespace

AdjustedRow Adjustment::apply(const SamplingInput& input, const float* logits, int64_t vocab,
                              const uint32_t* mask, const RowMaximum& raw) {
  const SamplingParams& params = input.params;
  bool stops_forbidden = input.output_size() < params.min_tokens && !params.stop_ids.empty();
  if (!params.adjusts() && mask == nullptr && !stops_forbidden) return {logits, raw};
  move(input, logits, vocab, mask, stops_forbidden);
  RowMaximum best = row_maximum(row_.data(), vocab);
  if (!best.valid && stops_forbidden) {  // if only a stop token is possible, min_tokens is ignored
    move(input, logits, vocab, mask, false);
    best = row_maximum(row_.data(), vocab);
  }
  if (!best.valid) {
    throw Error(WHERRY_INTERNAL,
                concat("mask, bias, allowed tokens and bad words leave no token possible after ",
                       input.output_size(), " tokens of output"));
  }
  return {row_.data(), best};
}

void Adjustment::move(const SamplingInput& input, const float* logits, int64_t vocab,
                      const uint32_t* mask, bool stops_forbidden) {
  const SamplingParams& params = input.params;
  row_.assign(logits, logits + vocab);
  for (const auto& [id, value] : params.bias) row_[static_cast<size_t>(id)] += value;
  if (mask != nullptr) forbid_unmasked(mask, row_);
  if (!params.allowed.empty()) forbid_unmasked(params.allowed.data(), row_);
  forbid_bad_words(input, row_);
  if (stops_forbidden) forbid_stops(input, row_);
  for (const auto& [id, count] : input.state.counts()) {
    float& x = row_[static_cast<size_t>(id)];
    x = penalised(x, count, params);
  }
  if (params.dry_multiplier == 0) return;
  for (const auto& [id, n] : input.state.repetitions().find(params, input.tokens)) {
    row_[static_cast<size_t>(id)] -= repetition_cost(params, n);
  }
}

}  // namespace wherry
