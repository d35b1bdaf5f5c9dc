// Functions on texts that filters and methods share.
#ifndef WHERRY_APP_TEMPLATE_TEXT_PIECES_H_
#define WHERRY_APP_TEMPLATE_TEXT_PIECES_H_

#include <string>
#include <string_view>
#include <vector>

#include "app/template/budget.h"
#include "app/template/objects.h"

namespace wherry::jinja {

std::string without_ends(std::string_view text, const Value* chars, bool left = true,
                         bool right = true);
std::string replaced(Budget& budget, const std::string& text, const std::string& old,
                     const std::string& with, int64_t count);
std::string centered(const std::string& text, int64_t width, const std::string& fill);
std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends);
std::vector<std::string_view> words_of(std::string_view text);
// Whether the text has cased characters, and all of them are upper case.
bool all_upper(std::string_view text);
bool all_lower(std::string_view text);
bool alphanumeric(char32_t code);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_TEXT_PIECES_H_
