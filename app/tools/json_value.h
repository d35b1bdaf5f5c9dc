// Incremental reader of JSON written by models.
//
// It does not validate values: brackets and strings determine where a value ends. Invalid JSON
// inside a value is passed on unchanged, as in OpenAI's API, whose clients have to expect it.
#ifndef WHERRY_APP_TOOLS_JSON_VALUE_H_
#define WHERRY_APP_TOOLS_JSON_VALUE_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/tools/scanner.h"

namespace wherry::app {

// Reads a string; nothing if there is none or it is longer than a name may be.
std::optional<std::string> json_name(Scanner& s);
// Emits a value's text without leading white space; returns whether the value is complete. stop:
// outside of strings, this text ends the value in any case; it is not consumed.
bool json_value(Scanner& s, const Emit& emit, std::string_view stop = "");
// Emits the content of a string with its escapes resolved: some models write arguments as a string.
bool json_unquoted(Scanner& s, const Emit& emit);

// Returns the kind of a text that Python's json module accepts: 'o'bject, 'a'rray, 's'tring,
// 'i'nteger, 'f'loat, 'b'oolean, 'n'ull, or 'c' for NaN and Infinity; 0 for other texts.
char json_kind(std::string_view text);
bool is_json(std::string_view text);  // without NaN and Infinity
// Returns a text as the content of a JSON string, without the quotes.
std::string json_escaped(std::string_view text);
std::string json_string(std::string_view text);

// Appends a code point; '?' for half a surrogate pair.
void append_character(std::string& text, char32_t code);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_JSON_VALUE_H_
