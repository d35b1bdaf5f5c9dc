// Normalizers: transform a text before it is split into pieces.
#ifndef WHERRY_APP_TEXT_STEPS_NORMALIZER_H_
#define WHERRY_APP_TEXT_STEPS_NORMALIZER_H_

#include <memory>
#include <string>

#include "app/text/steps/step.h"

namespace wherry::text {

class Json;

struct Normalized {
  std::string text;
  bool at_start;  // whether the text begins at the start of the whole text
};

using Normalizer = Step<Normalized>;

std::unique_ptr<Normalizer> read_normalizer(const Json& json);
std::unique_ptr<Normalizer> read_precompiled(const Json& json);  // reads SentencePiece's table

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_NORMALIZER_H_
