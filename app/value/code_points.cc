#include "app/value/code_points.h"

namespace wherry::unicode {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Returns where the code point before byte `at` begins.
size_t before(std::string_view text, size_t at) {
  --at;
  while (at > 0 && continues(text[at])) --at;
  return at;
}

bool stripped(char32_t code, const std::string_view* chars) {
  if (chars == nullptr) return is_space(code);
  for (size_t at = 0; at < chars->size();) {
    if (next_code_point(*chars, at) == code) return true;
  }
  return false;
}

// Returns the length of a well-formed sequence at `at`; or 0, and in `bad` the number of bytes that
// one U+FFFD replaces (the maximal subpart, as in the Unicode Standard and Python).
size_t sequence(std::string_view text, size_t at, size_t& bad) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  bad = 1;
  if (length == 0) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= text.size()) return 0;
    unsigned char low = 0x80, high = 0xBF;
    if (i == 1) {
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) return 0;
    bad = i + 1;
  }
  return length;
}

}  // namespace

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (char byte : text) count += !continues(byte);
  return count;
}

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  char32_t code = first & (0x3F >> more);
  for (int i = 0; i < more && at < text.size(); ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[at++]) & 0x3F);
  }
  return code;
}

void append_code_point(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr unsigned char kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

size_t byte_of(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (continues(text[at])) continue;
    if (index == 0) return at;
    --index;
  }
  return at;
}

bool is_space(char32_t code) {
  return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

size_t skip_left(std::string_view text, const std::string_view* chars) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    if (!stripped(next_code_point(text, end), chars)) break;
    at = end;
  }
  return at;
}

size_t skip_right(std::string_view text, const std::string_view* chars) {
  size_t end = text.size();
  while (end > 0) {
    const size_t start = before(text, end);
    size_t at = start;
    if (!stripped(next_code_point(text, at), chars)) break;
    end = start;
  }
  return end;
}

std::string well_formed(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t bad = 1;
    if (const size_t length = sequence(text, at, bad)) {
      made.append(text, at, length);
      at += length;
    } else {
      append_code_point(made, kReplacement);
      at += bad;
    }
  }
  return made;
}

}  // namespace wherry::unicode
