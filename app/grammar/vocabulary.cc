#include "app/grammar/vocabulary.h"

namespace wherry::app {

namespace {

constexpr char kSpecial = '\xff';  // marks a special token; valid UTF-8 never contains it

}  // namespace

std::vector<std::string> grammar_vocabulary(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<std::string> made(static_cast<size_t>(vocab_size) + 1);
  for (int32_t id = 0; id < vocab_size; ++id) {
    std::string& text = made[static_cast<size_t>(id)];
    if (!tokenizer.token_of(id)) continue;
    text = tokenizer.piece(id);
    if (tokenizer.is_special(id)) {
      text.insert(text.begin(), kSpecial);
    } else if (text.find(kSpecial) != std::string::npos) {
      text.clear();  // no text contains this byte
    }
  }
  made.back() = std::string(1, kSpecial);
  return made;
}

}  // namespace wherry::app
