// Properties of characters, as `tokenizers` has them. All made once, when first asked for.
#ifndef WHERRY_ENGINE_APP_TEXT_UNICODE_PROPERTIES_H_
#define WHERRY_ENGINE_APP_TEXT_UNICODE_PROPERTIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/text/unicode/code_points.h"

namespace wherry::text {

// General categories: "L", "Lu", ...; the long names too. Nothing for other names.
std::optional<CodePoints> category(std::string_view name);

// From a table of the kind "set".
CodePoints packed_set(const char* table);

CodePoints pattern_words();  // \w of patterns
CodePoints spaces();         // White_Space

const CharSet& is_space();
const CharSet& is_word();  // of added tokens and `Whitespace`
const CharSet& is_punctuation();
const CharSet& is_numeric();
const CharSet& is_mark();        // what StripAccents takes
const CharSet& is_nonspacing();  // BertNormalizer's accents
const CharSet& is_control();     // what BertNormalizer's clean_text takes

// A value for each character, from a table of runs.
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

#endif  // WHERRY_ENGINE_APP_TEXT_UNICODE_PROPERTIES_H_
