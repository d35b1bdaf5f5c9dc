// Treats texts as Python does: counts and slices them by code points, while they are stored in
// UTF-8.
#ifndef WHERRY_APP_VALUE_CODE_POINTS_H_
#define WHERRY_APP_VALUE_CODE_POINTS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace wherry::unicode {

// Counts the code points of well-formed UTF-8.
size_t count_code_points(std::string_view text);
// Returns the code point at byte `at`, and advances `at`.
char32_t next_code_point(std::string_view text, size_t& at);
void append_code_point(std::string& text, char32_t code);
// Returns the byte offset of code point `index`; text.size() if the text is shorter.
size_t byte_of(std::string_view text, size_t index);

bool is_space(char32_t code);  // equals Python's str.isspace
// Return the byte offsets of a text stripped of white space or, if given, of the code points in
// `chars`.
size_t skip_left(std::string_view text, const std::string_view* chars = nullptr);
size_t skip_right(std::string_view text, const std::string_view* chars = nullptr);

// Returns the text with ill-formed bytes replaced by U+FFFD.
std::string well_formed(std::string_view text);

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_CODE_POINTS_H_
