// Scans JSON by its grammar (RFC 8259).
#ifndef WHERRY_APP_TEXT_JSON_SCAN_H_
#define WHERRY_APP_TEXT_JSON_SCAN_H_

#include <string>
#include <string_view>

namespace wherry::text {

size_t skip_blank(std::string_view text, size_t at);
// Returns the end of the JSON value that begins at `at`. Throws Error if the value is invalid.
size_t checked_value(std::string_view text, size_t at, int depth = 0);
// Returns the end of a JSON value that was checked before.
size_t skip_value(std::string_view text, size_t at);
// Returns the content of the JSON string that begins at `at`, and advances `at`. The result is a
// part of the text, or `buffer` if the string has escapes.
std::string_view read_string(std::string_view text, size_t& at, std::string& buffer);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_JSON_SCAN_H_
