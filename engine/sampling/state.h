// The sampling state that a request keeps between tokens.
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
  // Logprob in the model's own distribution: without bias, without penalties, at temperature 1.
  float logprob = 0;
  TokenLogprobs top;    // the params.top_logprobs most likely tokens, in descending order
  double surprise = 0;  // surprise in bits among the tokens that mirostat kept; 0 without mirostat
};

// The sampling state of one request, which owns it. It changes when a token is accepted, never by
// sampling, so discarded samples (of a failed step, or draft tokens) leave no trace.
class SamplerState {
 public:
  SamplerState(const SamplingParams& params, const std::vector<int32_t>& prompt);

  // Accepts the newest of `tokens` (prompt and output) as part of the output. sample: the token's
  // sample; null for a forced token (jump-forward).
  void accept(const SamplingParams& params, const std::vector<int32_t>& tokens,
              const Sample* sample);

  // Returns the surprise in bits up to which mirostat keeps tokens.
  double mu() const { return mu_; }
  const Repetitions& repetitions() const { return repetitions_; }
  // Maps each token to its count in the output; 0 for a token of the prompt, which
  // repetition_penalty needs. Empty if no penalty is on.
  const std::unordered_map<int32_t, int32_t>& counts() const { return counts_; }

 private:
  std::unordered_map<int32_t, int32_t> counts_;
  Repetitions repetitions_;  // empty if DRY is off
  double mu_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_STATE_H_
