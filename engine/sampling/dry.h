// The DRY penalty ("don't repeat yourself", p-e-w,
// github.com/oobabooga/text-generation-webui/pull/5677): a token that would extend a repetition
// costs multiplier * base^(n - allowed_length), where the last n tokens of the text occurred before
// the same token earlier in the text.
#ifndef WHERRY_ENGINE_SAMPLING_DRY_H_
#define WHERRY_ENGINE_SAMPLING_DRY_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sampling/params.h"

namespace wherry {

// An index of a text's short n-grams and their places, the newest first. With it, adding a token
// and finding repetitions at the end of the text need no pass over the text.
class Repetitions {
 public:
  // How many tokens beyond allowed_length to compare; the penalty is prohibitive long before that.
  static constexpr int64_t kExtension = 64;
  // How many earlier places of an n-gram to compare, the newest first.
  static constexpr int64_t kPlaces = 4096;

  // Adds tokens[index] to the index. Every token must be added, in order.
  void add(const SamplingParams& params, const std::vector<int32_t>& tokens, size_t index);
  // Maps each token that would extend a repetition to n, the length of the longest repetition that
  // it would extend; n is at least allowed_length.
  std::unordered_map<int32_t, int64_t> find(const SamplingParams& params,
                                            const std::vector<int32_t>& tokens) const;

 private:
  std::unordered_map<uint64_t, int32_t> newest_;  // hash of an n-gram -> index of its last token
  std::vector<int32_t> earlier_;  // [tokens] previous place of the same n-gram; -1 if none
  int64_t since_breaker_ = 0;     // tokens
};

// Returns the penalty for a repetition of n tokens, to subtract from a logit.
float repetition_cost(const SamplingParams& params, int64_t n);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_DRY_H_
