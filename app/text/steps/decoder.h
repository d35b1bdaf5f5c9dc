// Decoders: convert the names of tokens to text.
#ifndef WHERRY_APP_TEXT_STEPS_DECODER_H_
#define WHERRY_APP_TEXT_STEPS_DECODER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/text/steps/step.h"

namespace wherry::text {

class Json;

// A decoder step, which converts token names into pieces; the concatenated pieces are the text.
using Decoder = Step<std::vector<std::string>>;

std::unique_ptr<Decoder> read_decoder(const Json& json);

std::string replaced(std::string_view text, std::string_view what, std::string_view with);
// Returns the byte of a token name like <0x41>; -1 for other names.
int byte_of(std::string_view token);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_DECODER_H_
