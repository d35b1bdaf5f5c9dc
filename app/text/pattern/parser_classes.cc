#include <algorithm>

#include "app/text/pattern/parser.h"
#include "app/value/unicode/mappings.h"
#include "app/value/unicode/properties.h"

namespace wherry::text {

using namespace unicode;

namespace {

CodePoints hex_digits() { return CodePoints({{'0', '9' + 1}, {'A', 'F' + 1}, {'a', 'f' + 1}}); }

bool is_letter_or_digit(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

CodePoints PatternParser::in_both_cases(CodePoints set) const {
  const CharSet has(set);
  std::vector<std::pair<char32_t, char32_t>> more;
  auto related = [&](char32_t a, char32_t b) {
    if (has.contains(a)) more.emplace_back(b, b + 1);
    if (has.contains(b)) more.emplace_back(a, a + 1);
  };
  for (char32_t c = 'a'; c <= 'z'; ++c) related(c - 32, c);
  for (const auto& [code, to] : lower_cases().all()) {
    if (to.size() == 1) related(code, to[0]);
  }
  for (char32_t c : {'s', 'S'}) related(0x17F, c);  // the long s (U+017F) is lower case itself
  for (char32_t c : {'k', 'K'}) related(0x212A, c);
  return set | CodePoints(std::move(more));
}

CodePoints PatternParser::bracketed() {
  bool negated = take("^");
  CodePoints all = ~CodePoints(), result;
  bool first = true;
  for (;; first = false) {
    if (!more()) fail("a [ without ]");
    if (take("&&")) {
      all = all & result;
      result = CodePoints();
      continue;
    }
    if (peek() == ']' && !first) break;
    if (auto posix = posix_class()) {
      result = result | *posix;
      continue;
    }
    if (take("[")) {
      result = result | bracketed();
      continue;
    }
    char32_t low = take_char();
    if (low == '\\') {
      char32_t c = take_char();
      if (auto set = class_escape(c)) {
        result = result | *set;
        continue;
      }
      low = escaped_char(c);
    }
    char32_t high = low;
    if (peek() == '-' && peek(1) != ']' && peek(1) != 0) {
      ++at_;
      high = take_char();
      if (high == '[') fail("a range that ends in a class");
      if (high == '\\') high = escaped_char(take_char());
      if (high < low) fail("a range that is reversed");
    }
    result = result | CodePoints({{low, high + 1}});
  }
  ++at_;
  result = all & result;
  if (any_case_) result = in_both_cases(std::move(result));
  return negated ? ~result : result;
}

std::optional<CodePoints> PatternParser::posix_class() {
  if (source_.substr(at_, 2) != "[:") return std::nullopt;
  size_t end = source_.find(":]", at_);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view name = source_.substr(at_ + 2, end - at_ - 2);
  bool negated = !name.empty() && name[0] == '^';
  if (negated) name.remove_prefix(1);
  std::optional<CodePoints> set;
  if (name == "space") set = spaces();
  if (name == "word") set = pattern_words();
  if (name == "digit") set = category("Nd");
  if (name == "xdigit") set = hex_digits();
  if (name == "ascii") set = CodePoints({{0, 0x80}});
  if (!set) fail("the class [:" + std::string(name) + ":]");
  at_ = end + 2;
  return negated ? ~*set : *set;
}

CodePoints PatternParser::property(bool negated) {
  if (!take("{")) fail("\\p without {");
  if (take("^")) negated = !negated;
  size_t end = source_.find('}', at_);
  if (end == std::string_view::npos) fail("\\p{ without }");
  std::string_view name = source_.substr(at_, end - at_);
  auto set = category(name);
  if (!set) fail("the property \\p{" + std::string(name) + "}; general categories are known");
  at_ = end + 1;
  return negated ? ~*set : *set;
}

std::optional<CodePoints> PatternParser::class_escape(char32_t c) {
  switch (c) {
    case 's':
      return spaces();
    case 'S':
      return ~spaces();
    case 'd':
      return *category("Nd");
    case 'D':
      return ~*category("Nd");
    case 'w':
      return pattern_words();
    case 'W':
      return ~pattern_words();
    case 'h':
      return hex_digits();
    case 'H':
      return ~hex_digits();
    case 'p':
      return property(false);
    case 'P':
      return property(true);
    default:
      return std::nullopt;
  }
}

uint32_t PatternParser::hex(size_t least, size_t most) {
  uint32_t value = 0;
  size_t n = 0;
  for (; n < most && more(); ++n, ++at_) {
    char c = peek();
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) break;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  if (n < least || value >= CodePoints::kEnd || (value >= 0xD800 && value < 0xE000)) {
    fail("a code that is no character");
  }
  return value;
}

char32_t PatternParser::escaped_char(char32_t c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    case 'e':
      return 0x1B;
    case 'u':
      return hex(4, 4);
    case 'x': {
      if (!take("{")) {
        char32_t code = hex(1, 2);
        if (code >= 0x80) fail("\\x of a byte that is no character");
        return code;
      }
      char32_t code = hex(1, 6);
      if (!take("}")) fail("\\x{ without }");
      return code;
    }
    default:
      break;
  }
  if (is_letter_or_digit(c)) fail("an escape that is not supported");
  return c;
}

}  // namespace wherry::text
