// Characters of UTF-8.
#ifndef WHERRY_ENGINE_APP_TEXT_UNICODE_UTF8_H_
#define WHERRY_ENGINE_APP_TEXT_UNICODE_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::text {

inline constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

inline size_t length_of(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The character at `at` of a well-formed text, which is moved behind it.
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

// Where the character that ends at `at` begins.
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

// What begins at a byte: a character, or the longest beginning of one (Unicode, table 3-7: what
// one U+FFFD stands for), whole or cut off by the end of the text.
struct Utf8Part {
  size_t length;
  bool whole;
  bool cut;  // bytes that follow could make it whole
};
Utf8Part part_at(std::string_view text, size_t at);

bool is_well_formed(std::string_view text);
// Each ill-formed part becomes U+FFFD.
std::string repaired(std::string_view text);

// Decodes bytes as they come; an unfinished character waits for the rest.
class Utf8Stream {
 public:
  // `each_byte`: a U+FFFD for each ill-formed byte, not one for each part.
  explicit Utf8Stream(bool each_byte) : each_byte_(each_byte) {}
  std::string push(std::string_view bytes) { return decode(bytes, false); }
  std::string flush() { return decode("", true); }

 private:
  std::string decode(std::string_view bytes, bool final);

  bool each_byte_;
  std::string held_;
};

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_UNICODE_UTF8_H_
