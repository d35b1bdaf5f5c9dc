// The grammar of JSON (RFC 8259).
#ifndef WHERRY_ENGINE_APP_TEXT_JSON_SCAN_H_
#define WHERRY_ENGINE_APP_TEXT_JSON_SCAN_H_

#include <string>
#include <string_view>

namespace wherry::text {

size_t skip_blank(std::string_view text, size_t at);
// Where the value that begins at `at` ends. Throws Error if it is not one.
size_t checked_value(std::string_view text, size_t at, int depth = 0);
// The same for what has been checked.
size_t skip_value(std::string_view text, size_t at);
// What the string in quotes that begins at `at` says, which is moved behind it: a part of the text,
// or `buffer` if it has escapes.
std::string_view read_string(std::string_view text, size_t& at, std::string& buffer);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_JSON_SCAN_H_
