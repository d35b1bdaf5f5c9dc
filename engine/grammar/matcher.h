// What follows one request through a grammar, whichever library knows the grammar.
#ifndef WHERRY_ENGINE_GRAMMAR_MATCHER_H_
#define WHERRY_ENGINE_GRAMMAR_MATCHER_H_

#include <cstddef>
#include <cstdint>

namespace wherry {

// Used by one thread at a time.
class Matcher {
 public:
  Matcher() = default;
  virtual ~Matcher() = default;
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Size of the vocabulary. The id after the last one stands for "the text may end here": none of
  // the model's, so that it depends on no tokenizer which of them end a request.
  virtual size_t tokens() const = 0;
  // uint32 words of a mask: a bit for each token, and one for the end.
  virtual size_t words() const = 0;
  // False: error() says why.
  virtual bool fill(uint32_t* bits) = 0;
  virtual bool accept(uint32_t token) = 0;
  virtual bool rollback(size_t tokens) = 0;
  // Nothing may follow.
  virtual bool stopped() = 0;
  virtual bool accepting() = 0;
  virtual const char* error() const = 0;  // null: none
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_GRAMMAR_MATCHER_H_
