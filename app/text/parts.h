// The components of a Tokenizer.
#ifndef WHERRY_APP_TEXT_PARTS_H_
#define WHERRY_APP_TEXT_PARTS_H_

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
  // May be nullptr, which leaves texts as they are.
  std::unique_ptr<const text::Normalizer> normalizer;
  std::unique_ptr<const text::AddedTokens> added;
  // May be nullptr, which leaves pieces whole.
  std::unique_ptr<const text::PreTokenizer> pre_tokenizer;
  text::PostProcessor post_processor;
  std::unique_ptr<const text::Decoder> decoder;  // nullptr joins the tokens' names with spaces
  std::optional<text::TokenBytes> token_bytes;
};

}  // namespace wherry

#endif  // WHERRY_APP_TEXT_PARTS_H_
