// Converts the sampling fields of a request into the core's parameters.
#ifndef WHERRY_APP_CHAT_SAMPLING_H_
#define WHERRY_APP_CHAT_SAMPLING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "app/request/fields.h"
#include "app/text/tokenizer.h"
#include "wherry.h"

namespace wherry::app {

// Owns the core's parameters and the arrays that they point to; `record()` is valid as long as this
// object.
class Sampling {
 public:
  wherry_params record() const;

  wherry_params params{};
  std::vector<int32_t> stop_ids, breakers, bias_ids, allowed, bad_words, prediction;
  std::vector<float> bias_values;
  std::vector<size_t> bad_word_lengths;
};

// The properties of a model on which sampling depends.
struct Abilities {
  const Tokenizer* tokenizer;
  std::vector<int32_t> eos_ids;
  Value defaults;  // content of generation_config.json
  int64_t vocab_size;
  int64_t context;  // upper bound on the tokens of prompt and output together
};

// Returns the sampling parameters of a request. A max_tokens of 0 lasts until the context is full.
// Throws RequestError for an id outside the vocabulary, or fields that contradict each other.
Sampling sampling_of(const Fields& fields, const Abilities& model, int64_t max_tokens);

// Returns the number by which the core identifies a user or a cache salt; 0 for an empty name.
uint64_t number_of(const std::string& name);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_SAMPLING_H_
