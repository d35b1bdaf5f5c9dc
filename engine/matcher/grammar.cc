#include "matcher/grammar.h"

#include <utility>

#include "matcher/mask.h"
#include "support/error.h"

namespace wherry {
namespace {

// A grammar needs an Earley item in a row for each alternative, such as 10,000 properties in any
// order. llguidance's default limit of 2,000 rejects unions of ordinary tools. An item adds some 50
// ns to a mask.
constexpr size_t kMaxItemsInRow = 10'000;
constexpr size_t kMaxErrorLength = 1'000;  // bytes

LlgMatcher* compile(const Vocabulary& vocabulary, const std::string& kind,
                    const std::string& text) {
  LlgMatcherInit init{};
  vocabulary.api().set_defaults(&init, vocabulary.tokenizer());
  init.log_buffer_level = init.log_stderr_level = 0;  // a library never prints
  init.limits.max_items_in_row = kMaxItemsInRow;
  init.limits.verbose_errors = false;
  return vocabulary.api().new_matcher(&init, kind.c_str(), text.c_str());
}

}  // namespace

std::unique_ptr<Matcher> LlgMatch::clone() const {
  return std::make_unique<LlgMatch>(vocabulary_, vocabulary_->api().clone_matcher(handle_));
}

size_t LlgMatch::words() const { return vocabulary_->api().mask_bytes(handle_) / sizeof(uint32_t); }

bool LlgMatch::fill(uint32_t* bits) {
  return vocabulary_->api().compute_mask(handle_, bits, words() * sizeof(uint32_t)) == 0;
}

bool LlgMatch::accept(uint32_t token) {
  return vocabulary_->api().consume_token(handle_, token) == 0;
}

bool LlgMatch::rollback(size_t tokens) { return vocabulary_->api().rollback(handle_, tokens) == 0; }

Grammar::Grammar(std::shared_ptr<const Vocabulary> vocabulary, const std::string& kind,
                 const std::string& text) {
  if (kind != "json_schema" && kind != "regex" && kind != "lark") {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("a grammar of kind \"", kind, "\"; accepted are json_schema, regex, lark"));
  }
  LlgMatcher* handle = compile(*vocabulary, kind, text);
  fresh_ = std::make_unique<LlgMatch>(std::move(vocabulary), handle);
  std::vector<uint32_t> bits(fresh_->words());
  // Computes the first mask now, which builds much of the lexer that all requests then share.
  if (fresh_->error() == nullptr && (fresh_->stopped() || fresh_->fill(bits.data()))) return;
  const char* reason = fresh_->error();
  std::string shown = reason == nullptr ? "no token of the vocabulary can begin it" : reason;
  shown = shown.substr(0, shown.find(kLlgNoise));
  if (shown.size() > kMaxErrorLength) shown = shown.substr(0, kMaxErrorLength) + " ...";
  throw Error(WHERRY_INVALID_ARGUMENT, shown);
}

wherry_mask Grammar::mask(const int32_t* stop_ids, size_t n) const {
  std::unique_ptr<Matcher> matcher;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    matcher = fresh_->clone();
  }
  return mask_record(
      std::make_unique<Mask>(std::move(matcher), std::vector<int32_t>(stop_ids, stop_ids + n)));
}

}  // namespace wherry
