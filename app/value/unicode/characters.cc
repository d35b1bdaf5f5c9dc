#include "app/value/unicode/characters.h"

#include <algorithm>
#include <iterator>

#include "app/value/code_points.h"

namespace wherry::unicode {

namespace {

struct Span {
  char32_t first, last;
};
struct Shift {
  char32_t first, last;
  int32_t by;
  uint32_t step;
};
struct Expansion {
  char32_t code;
  const char* text;
};

#include "app/value/character_tables.h"

template <typename Row, size_t N>
const Row* find(const Row (&rows)[N], char32_t code) {
  const Row* found = std::upper_bound(std::begin(rows), std::end(rows), code,
                                      [](char32_t c, const Row& row) { return c < row.first; });
  if (found == std::begin(rows) || code > (found - 1)->last) return nullptr;
  return found - 1;
}

template <size_t N, size_t M>
void append_changed(std::string& made, const Shift (&shifts)[N], const Expansion (&more)[M],
                    char32_t code) {
  const Shift* shift = find(shifts, code);
  if (shift != nullptr && (code - shift->first) % shift->step == 0) {
    return append_code_point(made, static_cast<char32_t>(static_cast<int32_t>(code) + shift->by));
  }
  const Expansion* one =
      std::lower_bound(std::begin(more), std::end(more), code,
                       [](const Expansion& row, char32_t c) { return row.code < c; });
  if (one != std::end(more) && one->code == code) {
    made += one->text;
  } else {
    append_code_point(made, code);
  }
}

void append_upper(std::string& made, char32_t code) {
  append_changed(made, kToUpper, kMoreUpper, code);
}

void append_title(std::string& made, char32_t code) {
  append_changed(made, kToTitle, kMoreTitle, code);
}

bool is_cased(char32_t code) { return is_upper(code) || is_lower(code) || is_title(code); }

// Whether the sigma at `at` is the last letter of its word; its lower case is then "ς".
bool ends_word(std::string_view text, size_t at, size_t end) {
  if (at == 0) return false;
  size_t start = before(text, at);
  return is_cased(next_code_point(text, start)) &&
         (end == text.size() || !is_cased(next_code_point(text, end)));
}

void append_lower(std::string& made, std::string_view text, size_t at, size_t end, char32_t code) {
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  if (code == kSigma && ends_word(text, at, end)) {
    append_code_point(made, kFinalSigma);
  } else {
    append_changed(made, kToLower, kMoreLower, code);
  }
}

}  // namespace

bool is_alpha(char32_t code) { return find(kAlpha, code) != nullptr; }
bool is_decimal(char32_t code) { return find(kDecimal, code) != nullptr; }
bool is_digit(char32_t code) { return find(kDigit, code) != nullptr; }
bool is_numeric(char32_t code) { return find(kNumeric, code) != nullptr; }
bool is_upper(char32_t code) { return find(kUpper, code) != nullptr; }
bool is_lower(char32_t code) { return find(kLower, code) != nullptr; }
bool is_title(char32_t code) { return find(kTitle, code) != nullptr; }
bool is_printable(char32_t code) { return find(kHidden, code) == nullptr; }

std::string upper(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) append_upper(made, next_code_point(text, at));
  return made;
}

std::string lower(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    append_lower(made, text, start, at, code);
  }
  return made;
}

std::string folded(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    append_changed(made, kToFold, kMoreFold, next_code_point(text, at));
  }
  return made;
}

std::string capitalized(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (start == 0) {
      append_title(made, code);
    } else {
      append_lower(made, text, start, at, code);
    }
  }
  return made;
}

std::string titled(std::string_view text) {
  std::string made;
  bool within = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (within) {
      append_lower(made, text, start, at, code);
    } else {
      append_title(made, code);
    }
    within = is_cased(code);
  }
  return made;
}

std::string swapped(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (is_upper(code)) {
      append_lower(made, text, start, at, code);
    } else if (is_lower(code)) {
      append_upper(made, code);
    } else {
      append_code_point(made, code);
    }
  }
  return made;
}

}  // namespace wherry::unicode
