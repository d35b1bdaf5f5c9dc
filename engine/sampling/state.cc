#include "sampling/state.h"

namespace wherry {

SamplerState::SamplerState(const SamplingParams& params, const std::vector<int32_t>& prompt) {
  if (params.repetition_penalty != 1) {
    for (int32_t token : prompt) counts_.emplace(token, 0);
  }
}

void SamplerState::accept(const SamplingParams& params, const std::vector<int32_t>& tokens,
                          const Sample* /*sample*/) {
  if (params.penalises()) ++counts_[tokens.back()];
}

}  // namespace wherry
