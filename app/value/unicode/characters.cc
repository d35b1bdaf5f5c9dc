#include "app/value/unicode/characters.h"

#include "app/value/code_points.h"
#include "app/value/unicode/char_set.h"
#include "app/value/unicode/mappings.h"
#include "app/value/unicode/properties.h"
#include "app/value/unicode/tables.h"

namespace wherry::unicode {

namespace {

void append_mapped(std::string& text, char32_t code, const Mappings& first,
                   const Mappings* second = nullptr) {
  const std::u32string* to = first.find(code);
  if (to == nullptr && second != nullptr) to = second->find(code);
  if (to == nullptr) return append_code_point(text, code);
  for (char32_t c : *to) append_code_point(text, c);
}

const Mappings& upper_cases() {
  static const Mappings mappings(tables::kUpper);
  return mappings;
}

void append_upper(std::string& result, char32_t code) {
  append_mapped(result, code, upper_cases());
}

void append_title(std::string& result, char32_t code) {
  static const Mappings others(tables::kTitle);
  append_mapped(result, code, others, &upper_cases());
}

bool is_cased(char32_t code) { return is_upper(code) || is_lower(code) || is_title(code); }

// Whether the sigma at `at` is the last letter of its word; its lower case is then "ς".
bool ends_word(std::string_view text, size_t at, size_t end) {
  if (at == 0) return false;
  size_t start = before(text, at);
  return is_cased(next_code_point(text, start)) &&
         (end == text.size() || !is_cased(next_code_point(text, end)));
}

void append_lower(std::string& result, std::string_view text, size_t at, size_t end,
                  char32_t code) {
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  if (code == kSigma && ends_word(text, at, end)) {
    append_code_point(result, kFinalSigma);
  } else {
    append_mapped(result, code, lower_cases());
  }
}

}  // namespace

bool is_alpha(char32_t code) {
  static const CharSet set(packed_set(tables::kIsAlpha));
  return set.contains(code);
}
bool is_decimal(char32_t code) {
  static const CharSet set(packed_set(tables::kIsDecimal));
  return set.contains(code);
}
bool is_digit(char32_t code) {
  static const CharSet set(packed_set(tables::kIsDigit));
  return set.contains(code);
}
bool is_numeric(char32_t code) {
  static const CharSet set(packed_set(tables::kIsNumeric));
  return set.contains(code);
}
bool is_upper(char32_t code) {
  static const CharSet set(packed_set(tables::kIsUpper));
  return set.contains(code);
}
bool is_lower(char32_t code) {
  static const CharSet set(packed_set(tables::kIsLower));
  return set.contains(code);
}
bool is_title(char32_t code) {
  static const CharSet set(packed_set(tables::kIsTitle));
  return set.contains(code);
}
bool is_printable(char32_t code) {
  static const CharSet set(packed_set(tables::kIsHidden));
  return !set.contains(code);
}

std::string upper(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) append_upper(result, next_code_point(text, at));
  return result;
}

std::string lower(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    append_lower(result, text, start, at, code);
  }
  return result;
}

std::string folded(std::string_view text) {
  static const Mappings others(tables::kFold);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    append_mapped(result, next_code_point(text, at), others, &lower_cases());
  }
  return result;
}

std::string capitalized(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (start == 0) {
      append_title(result, code);
    } else {
      append_lower(result, text, start, at, code);
    }
  }
  return result;
}

std::string titled(std::string_view text) {
  std::string result;
  bool within = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (within) {
      append_lower(result, text, start, at, code);
    } else {
      append_title(result, code);
    }
    within = is_cased(code);
  }
  return result;
}

std::string swapped(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (is_upper(code)) {
      append_lower(result, text, start, at, code);
    } else if (is_lower(code)) {
      append_upper(result, code);
    } else {
      append_code_point(result, code);
    }
  }
  return result;
}

}  // namespace wherry::unicode
