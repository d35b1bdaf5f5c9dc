// How tokens are chosen, as clients ask for it: to the core's parameters.
#ifndef WHERRY_ENGINE_APP_CHAT_SAMPLING_H_
#define WHERRY_ENGINE_APP_CHAT_SAMPLING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "app/chat/fields.h"
#include "app/text/tokenizer.h"
#include "wherry.h"

namespace wherry::app {

// The core's parameters with the arrays that they point to. `record()` is valid as long as this is.
class Sampling {
 public:
  wherry_params record() const;

  wherry_params params{};
  std::vector<int32_t> stop_ids, breakers, bias_ids, allowed, bad_words;
  std::vector<float> bias_values;
  std::vector<size_t> bad_word_lengths;
};

// What a model brings to a request.
struct Abilities {
  const Tokenizer* tokenizer;
  std::vector<int32_t> eos_ids;
  Value defaults;  // generation_config.json
  int64_t vocab_size;
  int64_t context;  // tokens of prompt and output together
};

// max_tokens 0: until the context ends. Throws RequestError: an id that the model does not have, or
// fields that contradict each other.
Sampling sampling_of(const Fields& fields, const Abilities& model, int64_t max_tokens);

// What the core knows a user or a salt by; 0 for none.
uint64_t number_of(const std::string& name);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_SAMPLING_H_
