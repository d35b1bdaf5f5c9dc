// Character properties in the Unicode versions of `tokenizers`. Each is created at its first use.
#ifndef WHERRY_APP_VALUE_UNICODE_PROPERTIES_H_
#define WHERRY_APP_VALUE_UNICODE_PROPERTIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/value/unicode/char_set.h"

namespace wherry::unicode {

// Returns the characters of a general category: "L", "Lu", ... or its long name. Returns nothing
// for unknown names.
std::optional<CodePoints> category(std::string_view name);

// Decodes a table of the kind "set" (tables.cc).
CodePoints packed_set(const char* table);

CodePoints pattern_words();  // returns the characters that \w of patterns matches
CodePoints spaces();         // returns the characters with the property White_Space

const CharSet& is_white_space();
const CharSet& is_word();  // word characters for added tokens and the pre-tokenizer Whitespace
const CharSet& is_punctuation();
const CharSet& is_number();
const CharSet& is_mark();        // marks that the normalizer StripAccents removes
const CharSet& is_nonspacing();  // accents that BertNormalizer removes
const CharSet& is_control();     // control characters that BertNormalizer's clean_text removes

// Maps each character to a value, from a run-length encoded table.
class RunTable {
 public:
  explicit RunTable(const char* table);
  uint8_t operator[](char32_t code) const;

 private:
  std::vector<uint32_t> ends_;
  std::vector<uint8_t> values_;
};

std::string lowered(std::string_view text);

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_UNICODE_PROPERTIES_H_
