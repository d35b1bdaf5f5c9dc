// What sampling remembers of a request from token to token.
#ifndef WHERRY_ENGINE_SAMPLING_STATE_H_
#define WHERRY_ENGINE_SAMPLING_STATE_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sampling/dry.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"

namespace wherry {

struct Sample {
  int32_t token = -1;
  float logprob = 0;    // of the model's own distribution: no bias, no penalties, temperature 1
  TokenLogprobs top;    // params.top_logprobs most likely ones, descending
  double surprise = 0;  // bits, among the tokens that mirostat kept; 0 without it
};

// Belongs to the request and changes when a token of it is known to stay, never by sampling: what
// is sampled and thrown away (a step that failed, drafts) leaves no trace.
class SamplerState {
 public:
  SamplerState(const SamplingParams& params, const std::vector<int32_t>& prompt);

  // The newest of `tokens` (prompt and output) belongs to the output. `sample`: how it was drawn;
  // null for a token that was given (jump-forward).
  void accept(const SamplingParams& params, const std::vector<int32_t>& tokens,
              const Sample* sample);

  // The surprise, in bits, up to which mirostat keeps tokens.
  double mu() const { return mu_; }
  const Repetitions& repetitions() const { return repetitions_; }
  // Token -> times in the output, 0 for one of the prompt that repetition_penalty concerns; empty
  // without penalties.
  const std::unordered_map<int32_t, int32_t>& counts() const { return counts_; }

 private:
  std::unordered_map<int32_t, int32_t> counts_;
  Repetitions repetitions_;  // empty without DRY
  double mu_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_STATE_H_
