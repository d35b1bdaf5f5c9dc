// Character sets: sorted ranges for set operations, and bitmaps for look-up.
#ifndef WHERRY_APP_VALUE_UNICODE_CHAR_SET_H_
#define WHERRY_APP_VALUE_UNICODE_CHAR_SET_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace wherry::unicode {

// A set of characters as sorted ranges [first, second) that are neither adjacent nor overlapping.
class CodePoints {
 public:
  static constexpr char32_t kEnd = 0x110000;

  CodePoints() = default;
  explicit CodePoints(std::vector<std::pair<char32_t, char32_t>> ranges);
  static CodePoints one(char32_t code) { return CodePoints({{code, code + 1}}); }

  CodePoints operator|(const CodePoints& other) const;
  CodePoints operator&(const CodePoints& other) const { return ~(~*this | ~other); }
  CodePoints operator~() const;

  bool empty() const { return ranges_.empty(); }
  const std::vector<std::pair<char32_t, char32_t>>& ranges() const { return ranges_; }

 private:
  std::vector<std::pair<char32_t, char32_t>> ranges_;
};

// A set of characters as a bitmap in pages of 256 bits, of which equal ones are shared: a test
// takes two look-ups.
class CharSet {
 public:
  explicit CharSet(const CodePoints& members);

  bool contains(char32_t code) const {
    if (code < 128) return ascii_[code];
    return pages_[page_of_[code >> 8]][code >> 6 & 3] >> (code & 63) & 1;
  }
  bool ascii(unsigned char code) const { return ascii_[code]; }

 private:
  using Page = std::array<uint64_t, 4>;
  std::array<bool, 128> ascii_;
  std::vector<uint16_t> page_of_;
  std::vector<Page> pages_;
};

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_UNICODE_CHAR_SET_H_
