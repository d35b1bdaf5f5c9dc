#include "app/grammar/vocabulary.h"

namespace wherry::app {

namespace {

// First byte of a special token's entry; valid UTF-8 never contains it.
constexpr char kSpecial = '\xff';

}  // namespace

std::vector<std::string> grammar_vocabulary(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<std::string> texts(static_cast<size_t>(vocab_size) + 1);
  for (int32_t id = 0; id < vocab_size; ++id) {
    std::string& text = texts[static_cast<size_t>(id)];
    if (!tokenizer.token_of(id)) continue;
    text = tokenizer.piece(id);
    if (tokenizer.is_special(id)) {
      text.insert(text.begin(), kSpecial);
    } else if (text.find(kSpecial) != std::string::npos) {
      text.clear();  // no text contains this byte, so the token matches nothing
    }
  }
  texts.back() = std::string(1, kSpecial);
  return texts;
}

}  // namespace wherry::app
