// From the names of tokens to text.
#ifndef WHERRY_ENGINE_APP_TEXT_STEPS_DECODER_H_
#define WHERRY_ENGINE_APP_TEXT_STEPS_DECODER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/text/steps/step.h"

namespace wherry::text {

class Json;

// Turns token strings into pieces, which joined are the text.
using Decoder = Step<std::vector<std::string>>;

std::unique_ptr<Decoder> read_decoder(const Json& json);

std::string replaced(std::string_view text, std::string_view what, std::string_view with);
// The byte that <0x41> stands for; -1 for other names.
int byte_of(std::string_view token);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_STEPS_DECODER_H_
