// The interface of grammar matchers, which track one request; llguidance and xgrammar implement it.
#ifndef WHERRY_ENGINE_MATCHER_MATCHER_H_
#define WHERRY_ENGINE_MATCHER_MATCHER_H_

#include <cstddef>
#include <cstdint>

namespace wherry {

// Tracks the grammar state of one request. Not thread-safe.
class Matcher {
 public:
  Matcher() = default;
  virtual ~Matcher() = default;
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Returns the size of the vocabulary. The id after the last token stands for "the text may end
  // here". It is no token of the model, so the stop tokens of a request do not depend on the
  // tokenizer.
  virtual size_t tokens() const = 0;
  // Returns the number of uint32 words in a mask, which has one bit for each token and one for the
  // end.
  virtual size_t words() const = 0;
  // Writes the mask of the current state; returns false on failure, and error() says why.
  virtual bool fill(uint32_t* bits) = 0;
  virtual bool accept(uint32_t token) = 0;
  virtual bool rollback(size_t tokens) = 0;
  // Returns whether the text is complete and nothing may follow.
  virtual bool stopped() = 0;
  virtual bool accepting() = 0;
  virtual const char* error() const = 0;  // returns null if no call failed
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MATCHER_MATCHER_H_
