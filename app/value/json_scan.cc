#include "app/value/json_scan.h"

#include <algorithm>
#include <cstdio>

#include "app/value/code_points.h"

namespace wherry::json {

namespace {

constexpr size_t kNoPlace = std::string_view::npos;
constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";  // of escapes

struct Mistake {
  std::string what;
  size_t at = kNoPlace;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_high(int code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low(int code) { return code >= 0xDC00 && code < 0xE000; }

// Reads the escape \uXXXX, or the two of a surrogate pair, whose u is at `at`, and advances `at`;
// returns -1, and leaves `at`, if it is invalid.
int escaped_code(std::string_view text, size_t& at) {
  const int code = hex4(text, at + 1);
  if (code < 0) return -1;
  at += 5;
  if (!is_high(code) || text.substr(at, 2) != "\\u") return code;
  const int low = hex4(text, at + 2);
  if (!is_low(low)) return code;
  at += 6;
  return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

// A recursive-descent parser that throws the first mistake.
class Checker {
 public:
  Checker(std::string_view text, const JsonRules& rules) : text_(text), rules_(rules) {}

  void text() {
    value();
    blank();
    if (at_ < text_.size()) bad("Extra data", at_);
  }

 private:
  [[noreturn]] static void bad(const char* what, size_t at) { throw Mistake{what, at}; }

  void blank() { at_ = skip_blank(text_, at_); }
  bool comes(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool skip(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void value() {  // NOLINT(misc-no-recursion): rules_.levels bounds it
    blank();
    if (comes('"')) return string();
    if (comes('{') || comes('[')) return items(text_[at_] == '{');
    if (comes('-') || (at_ < text_.size() && is_digit(text_[at_]))) {
      if (!rules_.constants || !skip("-Infinity")) number();
      return;
    }
    if (skip("null") || skip("true") || skip("false")) return;
    if (!rules_.constants || !(skip("NaN") || skip("Infinity"))) bad("Expecting value", at_);
  }

  void items(bool object) {  // NOLINT(misc-no-recursion)
    if (++depth_ > rules_.levels) {
      throw Mistake{"it has more than " + std::to_string(rules_.levels) + " levels"};
    }
    const char close = object ? '}' : ']';
    ++at_;
    blank();
    if (!comes(close)) {
      for (;; ++at_) {
        if (object) name();
        value();
        blank();
        if (comes(close)) break;
        if (!comes(',')) bad("Expecting ',' delimiter", at_);
      }
    }
    ++at_;
    --depth_;
  }

  void name() {
    blank();
    if (!comes('"')) bad("Expecting property name enclosed in double quotes", at_);
    string();
    blank();
    if (!comes(':')) bad("Expecting ':' delimiter", at_);
    ++at_;
  }

  size_t digits() {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ - start;
  }

  // As in Python, a number ends before a point or an exponent without digits.
  void number() {
    const size_t start = at_;
    skip("-");
    if (!skip("0") && digits() == 0) bad("Expecting value", start);
    if (const size_t end = at_; skip(".") && digits() == 0) at_ = end;
    if (const size_t end = at_; skip("e") || skip("E")) {
      if (!skip("+")) skip("-");
      if (digits() == 0) at_ = end;
    }
  }

  void string() {
    const size_t start = at_++;
    while (true) {
      if (at_ >= text_.size()) bad("Unterminated string starting at", start);
      const char c = text_[at_];
      if (c == '\\') {
        escape(start);
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20 && !rules_.controls)
        bad("Invalid control character at", at_);
      ++at_;
      if (c == '"') return;
    }
  }

  void escape(size_t start) {
    if (at_ + 1 >= text_.size()) bad("Unterminated string starting at", start);
    const char letter = text_[at_ + 1];
    if (kLetters.find(letter) != kNoPlace) {
      at_ += 2;
      return;
    }
    if (letter != 'u') bad("Invalid \\escape", at_);
    ++at_;
    const int code = escaped_code(text_, at_);
    if (code < 0) bad("Invalid \\uXXXX escape", at_);
    if ((is_high(code) || is_low(code)) && rules_.halves == Halves::kFail) {
      char half[16];
      std::snprintf(half, sizeof half, "\\u%04x", static_cast<unsigned>(code));
      throw Mistake{std::string("it holds half of a surrogate pair (as ") + half +
                    "), which is no character: a text was cut in the middle of one"};
    }
  }

  std::string_view text_;
  const JsonRules& rules_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::string> json_error(std::string_view text, const JsonRules& rules) {
  try {
    Checker(text, rules).text();
    return std::nullopt;
  } catch (const Mistake& mistake) {
    if (mistake.at == kNoPlace) return mistake.what;
    const std::string_view before = text.substr(0, std::min(mistake.at, text.size()));
    const auto line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t start = before.rfind('\n') == kNoPlace ? 0 : before.rfind('\n') + 1;
    const size_t column = unicode::count_code_points(before.substr(start)) + 1;
    return mistake.what + ": line " + std::to_string(line) + " column " + std::to_string(column) +
           " (char " + std::to_string(unicode::count_code_points(before)) + ")";
  }
}

int hex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return -1;
  int code = 0;
  for (const char c : text.substr(at, 4)) {
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

size_t skip_blank(std::string_view text, size_t at) {
  while (at < text.size() &&
         (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) {
    ++at;
  }
  return at;
}

size_t skip_value(std::string_view text, size_t at) {
  int depth = 0;
  do {
    switch (text[at]) {
      case '"':
        for (++at; text[at] != '"'; ++at) at += text[at] == '\\';
        ++at;
        break;
      case '{':
      case '[':
        ++depth, ++at;
        break;
      case '}':
      case ']':
        --depth, ++at;
        break;
      default:  // skips a number, a word or a separator
        if (depth > 0) {
          ++at;
        } else {
          at = text.find_first_of(",]} \n\r\t", at);
          if (at == std::string_view::npos) at = text.size();
        }
    }
  } while (depth > 0);
  return at;
}

std::string_view read_string(std::string_view text, size_t& at, std::string& buffer) {
  const size_t begin = ++at;
  while (text[at] != '"' && text[at] != '\\') ++at;
  if (text[at] == '"') return text.substr(begin, at++ - begin);
  buffer = text.substr(begin, at - begin);
  while (text[at] != '"') {
    if (text[at] != '\\') {
      buffer += text[at++];
    } else if (text[++at] == 'u') {
      unicode::append_code_point(buffer, static_cast<char32_t>(escaped_code(text, at)));
    } else {
      buffer += kMeant[kLetters.find(text[at++])];
    }
  }
  ++at;
  return buffer;
}

}  // namespace wherry::json
