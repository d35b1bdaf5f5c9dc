// Compiled grammars of llguidance, and the masks that they create for requests.
#ifndef WHERRY_ENGINE_MATCHER_GRAMMAR_H_
#define WHERRY_ENGINE_MATCHER_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "matcher/matcher.h"
#include "matcher/vocabulary.h"
#include "wherry.h"

namespace wherry {

// Matches one request's output with llguidance's parser state.
class LlgMatch : public Matcher {
 public:
  LlgMatch(std::shared_ptr<const Vocabulary> vocabulary, LlgMatcher* handle)
      : vocabulary_(std::move(vocabulary)), handle_(handle) {}
  ~LlgMatch() override { vocabulary_->api().free_matcher(handle_); }

  std::unique_ptr<Matcher> clone() const;
  size_t tokens() const override { return vocabulary_->size(); }
  size_t words() const override;
  bool fill(uint32_t* bits) override;
  bool accept(uint32_t token) override;
  bool rollback(size_t tokens) override;
  bool stopped() override { return vocabulary_->api().is_stopped(handle_); }
  bool accepting() override { return vocabulary_->api().is_accepting(handle_); }
  const char* error() const override { return vocabulary_->api().get_error(handle_); }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  LlgMatcher* handle_;
};

class Grammar {
 public:
  // Compiles a grammar as wherry_grammar_compile does.
  Grammar(std::shared_ptr<const Vocabulary> vocabulary, const std::string& kind,
          const std::string& text);

  // Creates the mask of one request. Thread-safe. The caller owns the record, which stays valid
  // after the grammar is freed.
  wherry_mask mask(const int32_t* stop_ids, size_t n) const;

 private:
  // Matcher at the start of the text, with its first mask computed.
  std::unique_ptr<LlgMatch> fresh_;
  mutable std::mutex mutex_;  // needed because cloning reads state that llguidance changes lazily
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MATCHER_GRAMMAR_H_
