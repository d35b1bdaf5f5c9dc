#include "app/text/json/scan.h"

#include <cstdint>

#include "app/value/code_points.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

namespace {

constexpr int kMostLevels = 64;

[[noreturn]] void refuse(std::string_view text, size_t at, const char* expected) {
  std::string_view found = text.substr(at, 20);
  throw Error(WHERRY_INVALID_ARGUMENT,
              concat("tokenizer.json is not JSON: at byte ", at, " of ", text.size(), " stands \"",
                     found, "\" where ", expected, " is wanted"));
}

int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// Parses four hexadecimal digits at `at`; returns 0x110000 if they are invalid.
char32_t unit(std::string_view text, size_t at) {
  char32_t value = 0;
  if (at + 4 > text.size()) return 0x110000;
  for (size_t i = 0; i < 4; ++i) {
    int digit = hex_digit(text[at + i]);
    if (digit < 0) return 0x110000;
    value = value * 16 + static_cast<char32_t>(digit);
  }
  return value;
}

// Parses the escape whose u is at `at`, and advances `at`; returns 0x110000 if the escape is
// invalid.
char32_t escaped_code(std::string_view text, size_t& at) {
  char32_t code = unit(text, at + 1);
  at += 5;
  if (code < 0xD800 || code >= 0xE000) return code;
  if (code >= 0xDC00 || text.substr(at, 2) != "\\u") return 0x110000;
  char32_t low = unit(text, at + 2);
  if (low < 0xDC00 || low >= 0xE000) return 0x110000;
  at += 6;
  return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

size_t checked_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"';) {
    if (static_cast<unsigned char>(text[at]) < 0x20) refuse(text, at, "a character of a string");
    if (text[at] != '\\') {
      ++at;
      continue;
    }
    size_t begin = at++;
    if (at < text.size() && text[at] == 'u') {
      if (escaped_code(text, at) >= 0x110000) refuse(text, begin, "the escape of a character");
    } else if (at < text.size() &&
               std::string_view("\"\\/bfnrt").find(text[at]) != std::string_view::npos) {
      ++at;
    } else {
      refuse(text, begin, "an escape");
    }
  }
  if (at == text.size()) refuse(text, at, "the end of a string");
  return at + 1;
}

size_t checked_number(std::string_view text, size_t at) {
  auto digits = [&] {
    size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at == begin) refuse(text, at, "a digit");
  };
  auto take = [&](std::string_view any) {
    if (at == text.size() || any.find(text[at]) == std::string_view::npos) return false;
    ++at;
    return true;
  };
  take("-");
  if (!take("0")) digits();
  if (take(".")) digits();
  if (take("eE")) {
    take("+-");
    digits();
  }
  return at;
}

// Checks the items of the object or array at `at`; returns its end.
size_t checked_items(std::string_view text, size_t at, int depth) {
  bool object = text[at] == '{';
  char close = object ? '}' : ']';
  if (depth == kMostLevels) refuse(text, at, "a value that nests at most 64 levels deep");
  at = skip_blank(text, at + 1);
  if (at < text.size() && text[at] == close) return at + 1;
  for (;;) {
    if (object) {
      if (at == text.size() || text[at] != '"') refuse(text, at, "a key");
      at = skip_blank(text, checked_string(text, at));
      if (at == text.size() || text[at] != ':') refuse(text, at, "a colon");
      at = skip_blank(text, at + 1);
    }
    at = skip_blank(text, checked_value(text, at, depth + 1));
    if (at < text.size() && text[at] == close) return at + 1;
    if (at == text.size() || text[at] != ',') refuse(text, at, "a comma or the end of a list");
    at = skip_blank(text, at + 1);
  }
}

}  // namespace

size_t skip_blank(std::string_view text, size_t at) {
  while (at < text.size() &&
         (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) {
    ++at;
  }
  return at;
}

size_t checked_value(std::string_view text, size_t at, int depth) {
  if (at == text.size()) refuse(text, at, "a value");
  char c = text[at];
  if (c == '{' || c == '[') return checked_items(text, at, depth);
  if (c == '"') return checked_string(text, at);
  for (std::string_view word : {"null", "true", "false"}) {
    if (text.substr(at, word.size()) == word) return at + word.size();
  }
  if (c == '-' || (c >= '0' && c <= '9')) return checked_number(text, at);
  refuse(text, at, "a value");
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
  size_t begin = ++at;
  while (text[at] != '"' && text[at] != '\\') ++at;
  if (text[at] == '"') return text.substr(begin, at++ - begin);
  buffer = text.substr(begin, at - begin);
  while (text[at] != '"') {
    if (text[at] != '\\') {
      buffer += text[at++];
      continue;
    }
    char c = text[++at];
    if (c == 'u') {
      append_code_point(buffer, escaped_code(text, at));
      continue;
    }
    ++at;
    buffer += c == 'n'   ? '\n'
              : c == 't' ? '\t'
              : c == 'r' ? '\r'
              : c == 'b' ? '\b'
              : c == 'f' ? '\f'
                         : c;
  }
  ++at;
  return buffer;
}

}  // namespace wherry::text
