// Reads JSON by its grammar (RFC 8259), without building values: what the readers of values, of
// tokenizer.json and of models' output have in common.
#ifndef WHERRY_APP_VALUE_JSON_SCAN_H_
#define WHERRY_APP_VALUE_JSON_SCAN_H_

#include <optional>
#include <string>
#include <string_view>

namespace wherry::json {

// What to do with half of a surrogate pair ("\ud800" without its other
// half), which is not a character: kFail makes it an error; kKept keeps it
// as three bytes, in the manner of UTF-8, for a caller that reports its
// place.
enum class Halves { kFail, kKept };

struct JsonRules {
  int levels = 64;  // upper bound on nested lists and objects
  Halves halves = Halves::kFail;
  bool constants = true;  // whether NaN, Infinity and -Infinity are numbers, as in Python
  bool controls = false;  // whether strings may contain control characters
};

// Returns why a text is not JSON, in the words of Python's json module; nothing if it is JSON.
std::optional<std::string> json_error(std::string_view text, const JsonRules& rules = {});

// The rest is for texts without an error.

size_t skip_blank(std::string_view text, size_t at);
// Returns the end of the value that begins at `at`.
size_t skip_value(std::string_view text, size_t at);
// Returns the content of the string that begins at `at`, and advances `at`. The result is a part of
// the text, or `buffer` if the string has escapes.
std::string_view read_string(std::string_view text, size_t& at, std::string& buffer);

// Returns the number of the four hexadecimal digits at `at` of any text; -1 if they are invalid.
int hex4(std::string_view text, size_t at);

}  // namespace wherry::json

#endif  // WHERRY_APP_VALUE_JSON_SCAN_H_
