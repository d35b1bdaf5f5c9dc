#include "app/text/detokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "app/text/tokenizer.h"
#include "app/value/code_points.h"

namespace wherry {

namespace text {

class TokenStream {
 public:
  virtual ~TokenStream() = default;
  virtual std::string push(int32_t token) = 0;
  virtual std::string flush() = 0;
};

}  // namespace text

namespace {

constexpr size_t kTail = 16;  // upper bound on prompt tokens that can affect the text after them
// Upper bound on tokens that wait for a complete character; then they are emitted as they are.
constexpr size_t kPending = 16;

// Detokenizes by concatenating the tokens' bytes and decoding UTF-8 incrementally.
class ByBytes : public text::TokenStream {
 public:
  ByBytes(const Tokenizer& tokenizer, const text::ByteRules& rules,
          const std::vector<int32_t>& tail, bool complete)
      : tokenizer_(tokenizer), utf8_(rules.each_byte), strip_(rules.strip) {
    for (int32_t token : tail) {
      push(token);
      if (!complete) strip_ = 0;  // the tail of a prompt does not include the prompt's beginning
    }
  }

  std::string push(int32_t token) override {
    if (tokenizer_.is_special(token)) return "";
    return start(utf8_.push(tokenizer_.piece(token)));
  }
  std::string flush() override { return start(utf8_.flush()); }

 private:
  std::string start(std::string text) {
    size_t gone = 0;
    while (strip_ > 0 && gone < text.size()) {
      strip_ = text[gone] == ' ' ? strip_ - 1 : 0;
      gone += text[gone] == ' ';
    }
    return gone > 0 ? text.substr(gone) : text;
  }

  const Tokenizer& tokenizer_;
  unicode::Utf8Stream utf8_;
  int64_t strip_;  // number of spaces to remove from the text's beginning
};

// Detokenizes by decoding a few tokens with and without the new ones; the difference is the new
// text. The context consists of the tokens that were emitted last, so that a decoder sees the
// neighbours it needs, and the cost does not grow with the text.
class InContext : public text::TokenStream {
 public:
  InContext(const Tokenizer& tokenizer, std::vector<int32_t> tail)
      : tokenizer_(tokenizer), context_(std::move(tail)) {}

  std::string push(int32_t token) override {
    if (!tokenizer_.is_text(token)) return "";
    pending_.push_back(token);
    std::string text = new_text();
    if (ends_in_replacement(text) && pending_.size() < kPending) return "";
    if (!text.empty() || pending_.size() == kPending) {
      context_ = joined();
      if (context_.size() > kTail) context_.erase(context_.begin(), context_.end() - kTail);
      pending_.clear();
    }
    return text;
  }

  std::string flush() override {
    std::string text = pending_.empty() ? "" : new_text();
    pending_.clear();
    return text;
  }

 private:
  static bool ends_in_replacement(const std::string& text) {
    return text.size() >= 3 && text.compare(text.size() - 3, 3, unicode::kReplacement) == 0;
  }

  std::vector<int32_t> joined() const {
    std::vector<int32_t> all = context_;
    all.insert(all.end(), pending_.begin(), pending_.end());
    return all;
  }

  std::string new_text() const {
    std::string before = tokenizer_.decode(context_, true),
                after = tokenizer_.decode(joined(), true);
    while (ends_in_replacement(before)) before.resize(before.size() - 3);
    return after.compare(0, before.size(), before) == 0 ? after.substr(before.size()) : after;
  }

  const Tokenizer& tokenizer_;
  std::vector<int32_t> context_, pending_;
};

// Returns the last text tokens of a prompt.
std::vector<int32_t> tail_of(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt) {
  std::vector<int32_t> tail;
  size_t from = prompt.size() - std::min(prompt.size(), 4 * kTail);
  for (size_t i = from; i < prompt.size(); ++i) {
    if (tokenizer.is_text(prompt[i])) tail.push_back(prompt[i]);
  }
  if (tail.size() > kTail) tail.erase(tail.begin(), tail.end() - kTail);
  return tail;
}

}  // namespace

struct Detokenizer::State {
  std::unique_ptr<text::TokenStream> stream;
  std::unordered_map<int32_t, std::string> names;  // id -> name of visible special tokens
};

Detokenizer::Detokenizer(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                         const std::vector<int32_t>& visible)
    : state_(std::make_unique<State>()) {
  auto tail = tail_of(tokenizer, prompt);
  if (const auto rules = tokenizer.byte_rules()) {
    state_->stream = std::make_unique<ByBytes>(tokenizer, *rules, tail, prompt.size() <= kTail);
  } else {
    state_->stream = std::make_unique<InContext>(tokenizer, std::move(tail));
  }
  for (int32_t id : visible) state_->names.emplace(id, tokenizer.piece(id));
}

Detokenizer::~Detokenizer() = default;
Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;

std::string Detokenizer::push(int32_t token) {
  auto name = state_->names.find(token);
  if (name == state_->names.end()) return state_->stream->push(token);
  return state_->stream->flush() + name->second;
}

std::string Detokenizer::flush() { return state_->stream->flush(); }

}  // namespace wherry
