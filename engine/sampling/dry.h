// DRY ("don't repeat yourself", p-e-w, github.com/oobabooga/text-generation-webui/pull/5677): a
// token that would go on with a repetition costs multiplier * base^(n - allowed_length), where n
// tokens at the end of the text have stood before it once already.
#ifndef WHERRY_ENGINE_SAMPLING_DRY_H_
#define WHERRY_ENGINE_SAMPLING_DRY_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sampling/params.h"

namespace wherry {

// Where each short run of tokens has stood, newest first. A token is added, and the repetitions at
// the end of the text are found, without a walk over the text.
class Repetitions {
 public:
  // Beyond allowed_length a repetition is not followed: the cost is prohibitive long before.
  static constexpr int64_t kExtension = 64;
  // How many earlier places of one run are looked at, the newest.
  static constexpr int64_t kPlaces = 4096;

  // Every token must be added, in order.
  void add(const SamplingParams& params, const std::vector<int32_t>& tokens, size_t index);
  // Token -> n: the longest repetition, of at least allowed_length tokens, that it would go on
  // with.
  std::unordered_map<int32_t, int64_t> find(const SamplingParams& params,
                                            const std::vector<int32_t>& tokens) const;

 private:
  std::unordered_map<uint64_t, int32_t> newest_;  // hash of a run -> index of its last token
  std::vector<int32_t> earlier_;  // [tokens] the same run's place before this one; -1: none
  int64_t since_breaker_ = 0;     // tokens
};

// What n costs, to be subtracted from a logit.
float repetition_cost(const SamplingParams& params, int64_t n);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_DRY_H_
