#include "sampling/state.h"

namespace wherry {

SamplerState::SamplerState(const SamplingParams& params, const std::vector<int32_t>& prompt)
    : mu_(2 * static_cast<double>(params.mirostat_tau)) {
  if (params.repetition_penalty != 1) {
    for (int32_t token : prompt) counts_.emplace(token, 0);
  }
  if (params.dry_multiplier > 0) {
    for (size_t i = 0; i < prompt.size(); ++i) repetitions_.add(params, prompt, i);
  }
}

void SamplerState::accept(const SamplingParams& params, const std::vector<int32_t>& tokens,
                          const Sample* sample) {
  if (params.penalises()) ++counts_[tokens.back()];
  if (params.dry_multiplier > 0) repetitions_.add(params, tokens, tokens.size() - 1);
  if (params.steers_surprise() && sample != nullptr) {
    double error = sample->surprise - static_cast<double>(params.mirostat_tau);
    mu_ -= static_cast<double>(params.mirostat_eta) * error;
  }
}

}  // namespace wherry
