// Character classes and case conversions, equal to those of Python's str.
#ifndef WHERRY_APP_TEMPLATE_CHARACTERS_H_
#define WHERRY_APP_TEMPLATE_CHARACTERS_H_

#include <string>
#include <string_view>

namespace wherry::jinja {

bool is_alpha(char32_t code);
bool is_decimal(char32_t code);
bool is_digit(char32_t code);
bool is_numeric(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_title(char32_t code);  // "ǅ": neither upper nor lower
bool is_printable(char32_t code);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string folded(std::string_view text);       // str.casefold
std::string capitalized(std::string_view text);  // the first as a title, the rest lower
std::string titled(std::string_view text);       // str.title
std::string swapped(std::string_view text);      // str.swapcase

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_CHARACTERS_H_
