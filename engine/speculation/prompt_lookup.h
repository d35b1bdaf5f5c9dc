// Proposes draft tokens by n-gram lookup: the tokens that followed the last n-gram earlier in the
// prompt, the output, or a predicted output. After Saxena, "Prompt Lookup Decoding" (2023).
#ifndef WHERRY_ENGINE_SPECULATION_PROMPT_LOOKUP_H_
#define WHERRY_ENGINE_SPECULATION_PROMPT_LOOKUP_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace wherry {

class PromptLookup {
 public:
  // prediction: tokens that the output is likely to repeat; may be empty.
  explicit PromptLookup(std::vector<int32_t> prediction);

  bool has_prediction() const { return !prediction_.empty(); }

  // Proposes at most `most` tokens to follow `tokens` (a prompt of prompt_size, and the output so
  // far). Between calls, tokens may only be appended; a call's cost depends on the new tokens
  // alone.
  std::vector<int32_t> propose(const std::vector<int32_t>& tokens, int64_t prompt_size,
                               int64_t most);

 private:
  struct Place {
    bool predicted;  // true if the place is in the prediction, false if in `tokens`
    int64_t next;    // index of the token that followed the n-gram
  };
  // Maps the hash of an n-gram to its last place.
  using Index = std::unordered_map<uint64_t, Place>;

  void index(const std::vector<int32_t>& text, int64_t from, bool predicted);
  bool follows(const Place& place, const std::vector<int32_t>& tokens, int64_t n) const;

  std::vector<int32_t> prediction_;
  Index long_, short_;
  int64_t indexed_ = 0;  // number of leading `tokens` that are indexed
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_PROMPT_LOOKUP_H_
