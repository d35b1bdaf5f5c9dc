// Cuts a text into pieces that are encoded each by itself.
#ifndef WHERRY_ENGINE_APP_TEXT_STEPS_PRE_TOKENIZER_H_
#define WHERRY_ENGINE_APP_TEXT_STEPS_PRE_TOKENIZER_H_

#include <memory>

#include "app/text/steps/pieces.h"
#include "app/text/steps/step.h"

namespace wherry::text {

class Json;

using PreTokenizer = Step<Pieces>;

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& json);

// Where the replacement of a space is put before a text.
enum class PrependScheme { kFirst, kNever, kAlways };
PrependScheme read_prepend_scheme(const Json& metaspace);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_STEPS_PRE_TOKENIZER_H_
