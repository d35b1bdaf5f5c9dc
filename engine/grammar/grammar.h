// A compiled grammar, and the mask that follows one request through it.
#ifndef WHERRY_ENGINE_GRAMMAR_GRAMMAR_H_
#define WHERRY_ENGINE_GRAMMAR_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grammar/vocabulary.h"
#include "wherry.h"

namespace wherry {

// The library's parser of one request, freed with it.
class Matcher {
 public:
  Matcher(std::shared_ptr<const Vocabulary> vocabulary, LlgMatcher* handle)
      : vocabulary_(std::move(vocabulary)), handle_(handle) {}
  ~Matcher() { vocabulary_->api().free_matcher(handle_); }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::unique_ptr<Matcher> clone() const;
  // uint32 words of a mask: a bit for each token, and one for the end.
  size_t words() const;
  // False: error() says why.
  bool fill(uint32_t* bits);
  bool accept(uint32_t token);
  bool rollback(size_t tokens);
  // Nothing may follow.
  bool stopped() const { return vocabulary_->api().is_stopped(handle_); }
  bool accepting() const { return vocabulary_->api().is_accepting(handle_); }
  const char* error() const { return vocabulary_->api().get_error(handle_); }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  LlgMatcher* handle_;
};

class Grammar {
 public:
  // As wherry_grammar_compile.
  Grammar(std::shared_ptr<const Vocabulary> vocabulary, const std::string& kind,
          const std::string& text);

  // Any thread. The record is the caller's; it holds what it needs of the grammar.
  wherry_mask mask(const int32_t* stop_ids, size_t n) const;

 private:
  std::unique_ptr<Matcher> fresh_;  // at the beginning, its first mask computed
  mutable std::mutex mutex_;        // copying reads what the library keeps lazily
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_GRAMMAR_GRAMMAR_H_
