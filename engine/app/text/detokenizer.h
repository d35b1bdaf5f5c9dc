// Token ids to text, one token at a time, without ever cutting a character.
//
// As runtime_py/text/detokenizer.py: the pieces joined are the text of all tokens decoded together,
// but for damaged runs of byte-fallback tokens, where whole characters that were given out stay.
#ifndef WHERRY_ENGINE_APP_TEXT_DETOKENIZER_H_
#define WHERRY_ENGINE_APP_TEXT_DETOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace wherry {

class Tokenizer;

// Text of one growing output; for one thread at a time.
class Detokenizer {
 public:
  // `prompt`: ids that the text continues, so that its pieces are what follows the prompt's text, a
  // leading space included; empty if the output is a text of its own. `visible`: special tokens
  // that come out by their names; the others have no text. `tokenizer` must outlive it.
  explicit Detokenizer(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt = {},
                       const std::vector<int32_t>& visible = {});
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;

  // The text that this token completes; "" while a character is unfinished. Whole characters.
  std::string push(int32_t token);
  // What is left at the end: U+FFFD for an unfinished character.
  std::string flush();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_APP_TEXT_DETOKENIZER_H_
