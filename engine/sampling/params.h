// A checked copy of wherry_params, the sampling parameters of the C ABI.
#ifndef WHERRY_ENGINE_SAMPLING_PARAMS_H_
#define WHERRY_ENGINE_SAMPLING_PARAMS_H_

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "wherry.h"

namespace wherry {

// The sampling parameters of a request, with the fields of wherry.h.
struct SamplingParams {
  int32_t max_tokens = 0;
  int32_t min_tokens = 0;
  std::unordered_set<int32_t> stop_ids;

  float temperature = 1;
  float dynamic_range = 0;
  float dynamic_exponent = 1;
  float top_p = 1;
  int32_t top_k = 0;
  float min_p = 0;
  float typical_p = 1;
  float top_n_sigma = 0;
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  float mirostat_tau = 0;
  float mirostat_eta = 0.1f;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float dry_multiplier = 0;
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_range = 0;
  std::unordered_set<int32_t> dry_breakers;
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> bias;
  // [ceil(vocab / 32)], a bit for each allowed token; empty if all tokens are allowed.
  std::vector<uint32_t> allowed;
  std::vector<std::vector<int32_t>> bad_words;

  int32_t top_logprobs = 0;
  int32_t prompt_logprobs = -1;

  // Whether these parameters change logits, apart from masks and min_tokens, which apply only at
  // times.
  bool adjusts() const {
    return !bias.empty() || !allowed.empty() || !bad_words.empty() || penalises() ||
           dry_multiplier > 0;
  }
  // Whether mirostat is on, which has no effect on greedy requests.
  bool steers_surprise() const { return mirostat_tau > 0 && temperature > 0; }
  bool penalises() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

// Returns the defaults of wherry_params_init.
wherry_params default_params();

// Copies a caller's record into this version's record: fields beyond its `size` get their defaults.
// Throws WHERRY_INVALID_ARGUMENT for a size that no version had.
wherry_params current_params(const wherry_params& given);

// Checks a caller's parameters. Throws WHERRY_INVALID_ARGUMENT with every field that is out of its
// range.
SamplingParams checked_params(const wherry_params& params, int64_t vocab);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_PARAMS_H_
