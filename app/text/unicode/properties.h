// Character properties in the Unicode versions of `tokenizers`. Each is created on first use.
#ifndef WHERRY_APP_TEXT_UNICODE_PROPERTIES_H_
#define WHERRY_APP_TEXT_UNICODE_PROPERTIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/text/unicode/code_points.h"

namespace wherry::text {

// Returns a general category: "L", "Lu", ... or its long name. Nothing for unknown names.
std::optional<CodePoints> category(std::string_view name);

// Decodes a table of the kind "set".
CodePoints packed_set(const char* table);

CodePoints pattern_words();  // \w of patterns
CodePoints spaces();         // White_Space

const CharSet& is_space();
const CharSet& is_word();  // for added tokens and `Whitespace`
const CharSet& is_punctuation();
const CharSet& is_numeric();
const CharSet& is_mark();        // removed by StripAccents
const CharSet& is_nonspacing();  // removed by BertNormalizer as accents
const CharSet& is_control();     // removed by BertNormalizer's clean_text

// A value per character, from a run-length encoded table.
class RunTable {
 public:
  explicit RunTable(const char* table);
  uint8_t operator[](char32_t code) const;

 private:
  std::vector<uint32_t> ends_;
  std::vector<uint8_t> values_;
};

std::string lowered(std::string_view text);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_UNICODE_PROPERTIES_H_
