#include "app/template/lexer.h"

#include <algorithm>
#include <cstdlib>

#include "app/value/code_points.h"
#include "app/value/value.h"

namespace wherry::jinja {

using namespace json;
using namespace unicode;

namespace {

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

int hex_value(char c) {
  if (digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Converts line ends to "\n" and removes the last
// one.
std::string normalized(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      result += source[i];
    } else {
      result += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(normalized(source)) {}

  std::vector<Token> run() {
    try {
      while (at_ < text_.size()) root();
      add(TokenKind::kEnd, "");
    } catch (const SyntaxError& error) {
      // The error is reported later, because the parser may find an earlier one.
      add(TokenKind::kError, error.what());
    }
    return std::move(tokens_);
  }

 private:
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + to, '\n'));
    at_ = to;
    line_starting_ = to > 0 && text_[to - 1] == '\n';
  }
  bool here(std::string_view sign) const { return text_.compare(at_, sign.size(), sign) == 0; }
  size_t past_space(size_t at) const { return at + skip_left(std::string_view(text_).substr(at)); }
  [[noreturn]] void fail_at(const std::string& message) const { throw SyntaxError(message, line_); }

  // Reads the text up to the next tag.
  void root() {
    size_t next = at_;
    for (;; ++next) {
      next = text_.find('{', next);
      if (next == std::string::npos || next + 1 >= text_.size()) {
        next = text_.size();
        break;
      }
      const char sign = text_[next + 1];
      if (sign == '%' || sign == '{' || sign == '#') break;
    }
    if (next == text_.size()) {
      add(TokenKind::kData, text_.substr(at_));
      advance(next);
      return;
    }
    const char kind = text_[next + 1];
    const char mark = next + 2 < text_.size() ? text_[next + 2] : ' ';
    const bool marked = mark == '-' || mark == '+';
    data(next, kind, marked ? mark : ' ');
    advance(next + (marked ? 3 : 2));
    if (kind == '#') {
      comment();
    } else if (kind == '{') {
      add(TokenKind::kVariableBegin, "");
      inside(true);
    } else if (!raw()) {
      add(TokenKind::kBlockBegin, "");
      inside(false);
    }
  }

  // Emits the text before a tag, without the white space that the tag strips.
  void data(size_t end, char kind, char mark) {
    std::string_view text = std::string_view(text_).substr(at_, end - at_);
    const bool starting = line_starting_;
    const int line = line_;
    advance(end);
    if (mark == '-') {
      text = text.substr(0, skip_right(text));
    } else if (mark != '+' && kind != '{') {
      const size_t line_break = text.rfind('\n');
      const size_t from = line_break == std::string_view::npos ? 0 : line_break + 1;
      const bool blank = skip_left(text.substr(from)) == text.size() - from && from < text.size();
      if ((from > 0 || starting) && blank) text = text.substr(0, from);
    }
    if (!text.empty()) tokens_.push_back({TokenKind::kData, line, std::string(text)});
  }

  // Returns the position after the end of a tag at `at` and the white space that it strips; 0 if
  // there is none.
  size_t tag_end(size_t at, std::string_view sign, bool plus) const {
    const bool minus = text_[at] == '-';
    if (minus || (plus && text_[at] == '+')) {
      if (text_.compare(at + 1, 2, sign) != 0) return 0;
      return minus ? past_space(at + 3) : at + 3;
    }
    if (text_.compare(at, 2, sign) != 0) return 0;
    const bool trimmed = plus && at + 2 < text_.size() && text_[at + 2] == '\n';
    return at + 2 + trimmed;
  }

  void comment() {
    for (size_t at = at_; at < text_.size(); ++at) {
      if (const size_t end = tag_end(at, "#}", true)) return advance(end);
    }
    fail_at("Missing end of comment tag");
  }

  // Reads a {% raw %} block; `at_` is after the opening sign.
  bool raw() {
    size_t at = past_space(at_);
    if (text_.compare(at, 3, "raw") != 0) return false;
    at = past_space(at + 3);
    if (at >= text_.size()) return false;
    const size_t begin = text_.compare(at, 2, "%}") == 0 ? at + 2 : tag_end(at, "%}", false);
    if (begin == 0) return false;
    advance(begin);
    for (size_t open = text_.find("{%", at_); open != std::string::npos;
         open = text_.find("{%", open + 1)) {
      size_t in = open + 2;
      const char mark = in < text_.size() ? text_[in] : ' ';
      if (mark == '-' || mark == '+') ++in;
      in = past_space(in);
      if (text_.compare(in, 6, "endraw") != 0) continue;
      in = past_space(in + 6);
      const size_t end = in < text_.size() ? tag_end(in, "%}", true) : 0;
      if (end == 0) continue;
      data(open, '%', mark == '-' || mark == '+' ? mark : ' ');
      return advance(end), true;
    }
    fail_at("Missing end of raw directive");
  }

  // Reads the tokens of one tag, up to its end.
  void inside(bool variable) {
    const std::string_view sign = variable ? "}}" : "%}";
    while (true) {
      advance(past_space(at_));
      if (at_ >= text_.size()) return;  // the parser reports the missing end of the tag
      if (open_.empty()) {
        if (const size_t end = tag_end(at_, sign, !variable)) {
          add(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, std::string(sign));
          return advance(end);
        }
      }
      token();
    }
  }

  void token() {
    const char c = text_[at_];
    if (digit(c)) return number();
    if (letter(c)) return name();
    if (c == '\'' || c == '"') return string(c);
    for (std::string_view sign : kOperators) {
      if (!here(sign)) continue;
      balance(sign);
      add(TokenKind::kOperator, std::string(sign));
      return advance(at_ + sign.size());
    }
    size_t end = at_;
    next_code_point(text_, end);
    fail_at("unexpected " + text_.substr(at_, end - at_));
  }

  void balance(std::string_view sign) {
    if (sign == "{") open_ += '}';
    if (sign == "(") open_ += ')';
    if (sign == "[") open_ += ']';
    if (sign != "}" && sign != ")" && sign != "]") return;
    if (open_.empty()) fail_at("unexpected '" + std::string(sign) + "'");
    if (open_.back() != sign[0]) {
      fail_at("unexpected '" + std::string(sign) + "', expected '" + open_.back() + "'");
    }
    open_.pop_back();
  }

  void name() {
    size_t end = at_;
    while (end < text_.size() && (letter(text_[end]) || digit(text_[end]))) ++end;
    add(TokenKind::kName, text_.substr(at_, end - at_));
    advance(end);
  }

  // Reads digits with single underscores between them; returns the position after them.
  template <typename IsDigit>
  size_t digits(size_t at, IsDigit is_digit, std::string& into) const {
    while (at < text_.size()) {
      const bool joined = text_[at] == '_' && at + 1 < text_.size() && is_digit(text_[at + 1]);
      if (!is_digit(text_[at]) && !joined) break;
      if (!joined) into += text_[at];
      ++at;
    }
    return at;
  }

  void number() {
    std::string read;
    if (text_[at_] == '0' && at_ + 2 < text_.size()) {
      const char base = text_[at_ + 1] | 0x20;
      const int radix = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 0;
      const auto fits = [&](char c) {
        const int v = hex_value(c);
        return v >= 0 && v < radix;
      };
      const size_t end = radix ? digits(at_ + 2, fits, read) : at_;
      if (!read.empty()) return integer(read, radix, end);
    }
    size_t end = digits(at_, digit, read);
    bool is_integer = true;
    // In "1.2.3", which means item 3 of item 2 of 1, a number after a dot has no fraction.
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';
    if (!after_dot && end + 1 < text_.size() && text_[end] == '.' && digit(text_[end + 1])) {
      read += '.';
      end = digits(end + 1, digit, read);
      is_integer = false;
    }
    if (!after_dot && end + 1 < text_.size() && (text_[end] | 0x20) == 'e') {
      size_t power = end + 1;
      const bool sign = text_[power] == '+' || text_[power] == '-';
      if (power + sign < text_.size() && digit(text_[power + sign])) {
        read += 'e';
        if (sign) read += text_[power++];
        end = digits(power, digit, read);
        is_integer = false;
      }
    }
    if (is_integer) return integer(read, 10, end);
    add(TokenKind::kFloat, read);
    tokens_.back().number = std::strtod(read.c_str(), nullptr);
    advance(end);
  }

  void integer(const std::string& read, int radix, size_t end) {
    int64_t value = 0;
    for (char c : read) {
      if (__builtin_mul_overflow(value, radix, &value) ||
          __builtin_add_overflow(value, hex_value(c), &value)) {
        fail_at("a number of more than 63 bits");
      }
    }
    add(TokenKind::kInteger, read);
    tokens_.back().integer = value;
    advance(end);
  }

  void string(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_at("a text is not closed");
    add(TokenKind::kString, unescaped(std::string_view(text_).substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
  }

  // Resolves Python's escapes in a string literal; unknown escapes remain.
  std::string unescaped(std::string_view text) const {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        result += text[i];
        continue;
      }
      const char c = text[++i];
      static constexpr std::string_view kLetters = "\\'\"abfnrtv";
      static constexpr std::string_view kMeant = "\\'\"\a\b\f\n\r\t\v";
      if (const size_t match = kLetters.find(c); match != std::string_view::npos) {
        result += kMeant[match];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        i = by_number(text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, result);
      } else if (c >= '0' && c <= '7') {
        char32_t code = 0;
        size_t end = i;
        for (; end < text.size() && end < i + 3 && text[end] >= '0' && text[end] <= '7'; ++end) {
          code = code * 8 + static_cast<char32_t>(text[end] - '0');
        }
        append_code_point(result, code);
        i = end - 1;
      } else if (c == 'N') {
        fail_at("\\N{...} is not read");
      } else if (c != '\n') {
        result += '\\';
        result += c;
      }
    }
    return result;
  }

  size_t by_number(std::string_view text, size_t i, size_t length, std::string& result) const {
    char32_t code = 0;
    for (size_t k = 1; k <= length; ++k) {
      const int value = i + k < text.size() ? hex_value(text[i + k]) : -1;
      if (value < 0) fail_at("a \\" + std::string(1, text[i]) + " escape is cut off");
      code = code * 16 + static_cast<char32_t>(value);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) fail_at("an escape is no character");
    append_code_point(result, code);
    return i + length;
  }

  const std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string open_;  // closing brackets of the brackets that are open
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace wherry::jinja
