// Computes the temperature for a row, also a dynamic one.
#ifndef WHERRY_ENGINE_SAMPLING_TEMPERATURE_H_
#define WHERRY_ENGINE_SAMPLING_TEMPERATURE_H_

#include <cstdint>

#include "sampling/params.h"

namespace wherry {

// Returns 1 / temperature, at most the largest float. With a dynamic_range the temperature ranges
// from max(0, temperature - range) where the model is sure to temperature + range where it knows
// nothing: low + (high - low) * h^dynamic_exponent, where h is the entropy (at temperature 1) of x
// [vocab], whose largest is `maximum`, divided by the entropy of as many equally likely tokens as
// are possible. Source: kalomaze, github.com/oobabooga/text-generation-webui/pull/5263.
float inverse_temperature(const SamplingParams& params, const float* x, int64_t vocab,
                          float maximum);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_TEMPERATURE_H_
