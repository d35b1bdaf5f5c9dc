// Pre-tokenizers: split a text into pieces that the model encodes separately.
#ifndef WHERRY_APP_TEXT_STEPS_PRE_TOKENIZER_H_
#define WHERRY_APP_TEXT_STEPS_PRE_TOKENIZER_H_

#include <memory>

#include "app/text/steps/pieces.h"
#include "app/text/steps/step.h"

namespace wherry::text {

class Json;

using PreTokenizer = Step<Pieces>;

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& json);

// Says when a text gets the replacement of a space as its first character.
enum class PrependScheme { kFirst, kNever, kAlways };
PrependScheme read_prepend_scheme(const Json& metaspace);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_PRE_TOKENIZER_H_
