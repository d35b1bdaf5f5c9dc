// Converts a tokenizer's tokens to the form that the grammar compiler needs.
#ifndef WHERRY_APP_GRAMMAR_VOCABULARY_H_
#define WHERRY_APP_GRAMMAR_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "app/text/tokenizer.h"

namespace wherry::app {

// Returns the bytes of each token, and as the last entry the end of the output. An entry that
// begins with the byte 0xff, which no text contains, is special; an empty one matches nothing.
// vocab_size: number of columns of the logits.
std::vector<std::string> grammar_vocabulary(const Tokenizer& tokenizer, int64_t vocab_size);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_VOCABULARY_H_
