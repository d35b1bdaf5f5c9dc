// A vocabulary for llguidance, made of the bytes of a model's tokens.
#ifndef WHERRY_ENGINE_MATCHER_VOCABULARY_H_
#define WHERRY_ENGINE_MATCHER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "matcher/llguidance.h"

namespace wherry {

// Owns llguidance's trie of the tokens. It is immutable, and grammars of all threads share it.
class Vocabulary {
 public:
  // Creates the vocabulary as wherry_vocabulary_create does.
  Vocabulary(const std::string& library, const uint8_t* bytes, const uint32_t* lengths, size_t n);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  const Llguidance& api() const { return api_; }
  const LlgTokenizer* tokenizer() const { return tokenizer_; }
  size_t size() const { return size_; }
  // Returns the id that stands for "the text may end here". It is no token of the model, so the
  // stop tokens of a request do not depend on the tokenizer.
  uint32_t end() const { return static_cast<uint32_t>(size_); }

 private:
  Llguidance api_;
  LlgTokenizer* tokenizer_ = nullptr;
  size_t size_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MATCHER_VOCABULARY_H_
