// The bytes of a model's tokens, as grammars read them.
#ifndef WHERRY_ENGINE_GRAMMAR_VOCABULARY_H_
#define WHERRY_ENGINE_GRAMMAR_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "grammar/llguidance.h"

namespace wherry {

// A trie of the tokens. Immutable; shared by the grammars of all threads.
class Vocabulary {
 public:
  // As wherry_vocabulary_create.
  Vocabulary(const std::string& library, const uint8_t* bytes, const uint32_t* lengths, size_t n);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  const Llguidance& api() const { return api_; }
  const LlgTokenizer* tokenizer() const { return tokenizer_; }
  size_t size() const { return size_; }
  // The id that stands for "the text may end here": none of the model's, so that it depends on no
  // tokenizer which of them end a request.
  uint32_t end() const { return static_cast<uint32_t>(size_); }

 private:
  Llguidance api_;
  LlgTokenizer* tokenizer_ = nullptr;
  size_t size_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_GRAMMAR_VOCABULARY_H_
