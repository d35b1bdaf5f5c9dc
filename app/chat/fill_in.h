// Builds prompts for models that were trained to fill a gap between two texts.
//
// No file of a model says how the two texts are joined, but each convention has special tokens, so
// the vocabulary tells the convention.
#ifndef WHERRY_APP_CHAT_FILL_IN_H_
#define WHERRY_APP_CHAT_FILL_IN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "app/text/tokenizer.h"

namespace wherry::app {

// The tokens of one fill-in-the-middle convention, and their order.
struct FillIn {
  const char* before_prefix;  // token before the text that precedes the gap
  const char* before_suffix;  // token before the text that follows the gap
  const char* last = "";      // the token after both texts; "" if there is none
  bool suffix_first = false;  // whether the suffix comes before the prefix
};

// Returns the special tokens of each convention.
std::vector<std::vector<std::string>> fill_in_marks();

// Returns the convention of a model; null if it was not trained for one.
const FillIn* fill_in_of(const Tokenizer& tokenizer);

// Returns the prompt after which the model writes the gap. prefix: tokens before the gap; a BOS
// token among them stays first. suffix: the text after the gap.
std::vector<int32_t> fill_in_prompt(const Tokenizer& tokenizer, const std::vector<int32_t>& eos_ids,
                                    const FillIn& way, std::vector<int32_t> prefix,
                                    const std::string& suffix);

// Adds the tokens that end the text of a gap to `known`.
void add_fill_in_stops(const Tokenizer& tokenizer, std::vector<int32_t>& known);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_FILL_IN_H_
