// UTF-8: decodes and encodes texts, also ill-formed and incremental ones; and treats them as Python
// does, which counts and slices by code points.
#ifndef WHERRY_APP_VALUE_CODE_POINTS_H_
#define WHERRY_APP_VALUE_CODE_POINTS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace wherry::unicode {

inline constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD in UTF-8

inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Returns the length of the sequence that begins with this byte.
inline size_t length_of(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// Returns the code point at byte `at` of a text, and advances `at`. Of an ill-formed text the code
// points are unspecified; no byte beyond its end is read.
inline char32_t next_code_point(std::string_view text, size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const size_t more = length_of(first) - 1;
  char32_t code = first & (0x3Fu >> more);
  for (size_t i = 0; i < more && at < text.size(); ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[at++]) & 0x3Fu);
  }
  return code;
}

// Returns where the code point that ends at byte `at` begins.
inline size_t before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && is_continuation(text[at]));
  return at;
}

void append_code_point(std::string& text, char32_t code);
// Counts the code points of well-formed UTF-8.
size_t count_code_points(std::string_view text);
// Returns the byte offset of code point `index`; text.size() if the text is shorter.
size_t byte_of(std::string_view text, size_t index);

bool is_space(char32_t code);  // equals Python's str.isspace
// Return the byte offsets of a text stripped of white space or, if given, of the code points in
// `chars`.
size_t skip_left(std::string_view text, const std::string_view* chars = nullptr);
size_t skip_right(std::string_view text, const std::string_view* chars = nullptr);

// The unit of text that begins at a byte: a character, or a maximal subpart that one U+FFFD
// replaces (Unicode, table 3-7), complete or cut off by the end of the text.
struct Utf8Part {
  size_t length;
  bool complete;
  bool cut;  // whether further bytes could complete the character
};
Utf8Part part_at(std::string_view text, size_t at);

bool is_well_formed(std::string_view text);
// Returns the text with each ill-formed part replaced by U+FFFD.
std::string well_formed(std::string_view text);

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
  std::string kept_;
};

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_CODE_POINTS_H_
