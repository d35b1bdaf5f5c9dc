// What a Tokenizer is made of.
#ifndef WHERRY_ENGINE_APP_TEXT_PARTS_H_
#define WHERRY_ENGINE_APP_TEXT_PARTS_H_

#include <memory>

#include "app/text/model/model.h"
#include "app/text/steps/added_tokens.h"
#include "app/text/steps/decoder.h"
#include "app/text/steps/normalizer.h"
#include "app/text/steps/post_processor.h"
#include "app/text/steps/pre_tokenizer.h"
#include "app/text/token_bytes.h"
#include "app/text/tokenizer.h"

namespace wherry {

struct Tokenizer::Parts {
  std::unique_ptr<const text::Model> model;
  std::unique_ptr<const text::Normalizer> normalizer;  // or nullptr
  std::unique_ptr<const text::AddedTokens> added;
  std::unique_ptr<const text::PreTokenizer> pre_tokenizer;  // or nullptr
  text::PostProcessor post_processor;
  std::unique_ptr<const text::Decoder> decoder;  // nullptr: names with spaces between
  std::optional<text::TokenBytes> token_bytes;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_APP_TEXT_PARTS_H_
