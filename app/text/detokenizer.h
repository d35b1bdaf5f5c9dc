// Converts token ids to text, one token at a time, without splitting a character.
//
// The concatenated pieces are the text of all tokens decoded together, except for invalid runs of
// byte-fallback tokens, where complete characters that were emitted remain.
#ifndef WHERRY_APP_TEXT_DETOKENIZER_H_
#define WHERRY_APP_TEXT_DETOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace wherry {

class Tokenizer;

// Detokenizes one growing output; not thread-safe.
class Detokenizer {
 public:
  // prompt: ids that the output continues, so that its pieces follow the prompt's text, with a
  // leading space if there is one; empty if the output is a text of its own. visible: special
  // tokens whose names are emitted; other special tokens have no text. `tokenizer` must outlive the
  // object.
  explicit Detokenizer(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt = {},
                       const std::vector<int32_t>& visible = {});
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;

  // Returns the text that this token completes, in whole characters; "" while a character is
  // incomplete.
  std::string push(int32_t token);
  // Returns the rest of the text at the end: U+FFFD for an incomplete character.
  std::string flush();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace wherry

#endif  // WHERRY_APP_TEXT_DETOKENIZER_H_
