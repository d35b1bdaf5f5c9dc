// What sampling reads besides logits: parameters, tokens and state of the request.
#ifndef WHERRY_ENGINE_SAMPLING_INPUT_H_
#define WHERRY_ENGINE_SAMPLING_INPUT_H_

#include <cstdint>
#include <vector>

#include "sampling/params.h"
#include "sampling/state.h"

namespace wherry {

// References to the request's data, which are valid during one call.
struct SamplingInput {
  const SamplingParams& params;
  const SamplerState& state;
  const std::vector<int32_t>& tokens;  // prompt and output tokens
  int64_t prompt_size;

  int64_t output_size() const { return static_cast<int64_t>(tokens.size()) - prompt_size; }
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_INPUT_H_
