// Decodes UTF-8 text, also ill-formed and incremental.
#ifndef WHERRY_APP_TEXT_UNICODE_UTF8_H_
#define WHERRY_APP_TEXT_UNICODE_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::text {

inline constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD in UTF-8

inline size_t length_of(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Returns the character at `at` of a well-formed text, and advances `at`.
inline char32_t next_char(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return ++at, first;
  char32_t code;
  size_t n = length_of(first);
  if (n == 2) {
    code = (first & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
  } else if (n == 3) {
    code = (first & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  } else {
    code = (first & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
           (byte(3) & 0x3Fu);
  }
  at += n;
  return code;
}

// Returns where the character that ends at `at` begins.
inline size_t before(std::string_view text, size_t at) {
  do --at;
  while (is_continuation(text[at]));
  return at;
}

inline void append(std::string& text, char32_t code) {
  auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

size_t count_chars(std::string_view text);

// The unit of text that begins at a byte: a character, or a maximal subpart that one U+FFFD
// replaces (Unicode, table 3-7), complete or cut off by the end of the text.
struct Utf8Part {
  size_t length;
  bool whole;
  bool cut;  // whether further bytes could complete the character
};
Utf8Part part_at(std::string_view text, size_t at);

bool is_well_formed(std::string_view text);
// Returns the text with each ill-formed part replaced by U+FFFD.
std::string repaired(std::string_view text);

// Decodes bytes incrementally; an incomplete character waits for its remaining bytes.
class Utf8Stream {
 public:
  // each_byte: whether each ill-formed byte becomes a U+FFFD, or else each ill-formed part.
  explicit Utf8Stream(bool each_byte) : each_byte_(each_byte) {}
  std::string push(std::string_view bytes) { return decode(bytes, false); }
  std::string flush() { return decode("", true); }

 private:
  std::string decode(std::string_view bytes, bool final);

  bool each_byte_;
  std::string held_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_UNICODE_UTF8_H_
