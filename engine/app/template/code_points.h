// Texts as Python has them: counted and cut by code points, kept in UTF-8.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_CODE_POINTS_H_
#define WHERRY_ENGINE_APP_TEMPLATE_CODE_POINTS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace wherry::jinja {

// Code points of well-formed UTF-8.
size_t count_code_points(std::string_view text);
// The code point at byte `at`, which moves behind it.
char32_t next_code_point(std::string_view text, size_t& at);
void append_code_point(std::string& text, char32_t code);
// The byte at which code point `index` begins; text.size() if there are not so many.
size_t byte_of(std::string_view text, size_t index);

bool is_space(char32_t code);  // as str.isspace
// Byte offsets of what remains when white space (or, if given, the code points of `chars`) goes.
size_t skip_left(std::string_view text, const std::string_view* chars = nullptr);
size_t skip_right(std::string_view text, const std::string_view* chars = nullptr);

// Ill-formed bytes become U+FFFD.
std::string well_formed(std::string_view text);

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_CODE_POINTS_H_
