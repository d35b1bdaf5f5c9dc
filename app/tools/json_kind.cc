// Validates JSON without building values in memory.
#include <algorithm>

#include "app/tools/json_value.h"

namespace wherry::app {

namespace {

// Maximum nesting depth. Python's json module fails near its recursion limit of 1000.
constexpr size_t kDeepest = 900;

// A recursive-descent parser. Functions that return char return a kind, see json_kind(); '\0' if
// the text is invalid.
class Check {
 public:
  explicit Check(std::string_view text) : text_(text) {}

  char whole() {
    const char kind = value();
    blank();
    return at_ == text_.size() ? kind : '\0';
  }
  bool has_constants() const { return constants_; }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void blank() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }
  size_t digits() {
    const size_t start = at_;
    at_ = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    return at_ - start;
  }

  char value() {  // NOLINT(misc-no-recursion): kDeepest bounds it
    blank();
    if (peek() == '"') return string() ? 's' : '\0';
    if (peek() == '{') return object() ? 'o' : '\0';
    if (peek() == '[') return items(']', [this] { return value() != '\0'; }) ? 'a' : '\0';
    if (skip("null")) return 'n';
    if (skip("true") || skip("false")) return 'b';
    if (skip("NaN") || skip("Infinity") || skip("-Infinity")) {
      constants_ = true;
      return 'c';
    }
    return number();
  }

  bool object() {  // NOLINT(misc-no-recursion)
    return items('}', [this] {
      blank();
      if (!string()) return false;
      blank();
      return skip(":") && value() != '\0';
    });
  }

  // Reads items up to the bracket `close`; `one` reads one item and returns whether it is valid.
  template <typename One>
  bool items(char close, One one) {  // NOLINT(misc-no-recursion)
    ++at_;
    if (++depth_ > kDeepest) return false;
    blank();
    bool right = peek() == close;
    while (!right) {
      if (!one()) return false;
      blank();
      right = peek() == close;
      if (!right && !skip(",")) return false;
    }
    ++at_;
    --depth_;
    return true;
  }

  bool string() {
    if (!skip("\"")) return false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') return skip("\"");
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }

  bool escape() {
    const char letter = ++at_ < text_.size() ? text_[at_] : '\0';
    if (letter != 'u')
      return letter != '\0' &&
             std::string_view("\"\\/bfnrt").find(letter) != std::string_view::npos;
    const std::string_view code = text_.substr(at_ + 1, 4);
    at_ += 4;
    return code.size() == 4 &&
           code.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  }

  char number() {
    skip("-");
    if (!skip("0") && digits() == 0) return '\0';
    char kind = 'i';
    if (const size_t before = at_; skip(".")) {
      if (digits() > 0) {
        kind = 'f';
      } else {
        at_ = before;
      }
    }
    if (const size_t before = at_; skip("e") || skip("E")) {
      if (!skip("+")) skip("-");
      if (digits() > 0) {
        kind = 'f';
      } else {
        at_ = before;
      }
    }
    return kind;
  }

  std::string_view text_;
  size_t at_ = 0, depth_ = 0;
  bool constants_ = false;
};

}  // namespace

char json_kind(std::string_view text) { return Check(text).whole(); }

bool is_json(std::string_view text) {
  Check check(text);
  return check.whole() != '\0' && !check.has_constants();
}

}  // namespace wherry::app
