// Classifies characters and converts their case, as Python's str does.
#ifndef WHERRY_APP_VALUE_UNICODE_CHARACTERS_H_
#define WHERRY_APP_VALUE_UNICODE_CHARACTERS_H_

#include <string>
#include <string_view>

namespace wherry::unicode {

bool is_alpha(char32_t code);
bool is_decimal(char32_t code);
bool is_digit(char32_t code);
bool is_numeric(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_title(char32_t code);  // "ǅ", for example, which is neither upper nor lower case
bool is_printable(char32_t code);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string folded(std::string_view text);  // equals Python's str.casefold
// Converts the first character to title case, the rest to lower case.
std::string capitalized(std::string_view text);
std::string titled(std::string_view text);   // equals Python's str.title
std::string swapped(std::string_view text);  // equals Python's str.swapcase

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_UNICODE_CHARACTERS_H_
