// Incremental reader of JSON that models write.
//
// It does not validate values: only brackets and strings determine where a value ends. Invalid JSON
// inside a value is passed on unchanged, as in OpenAI's API, whose clients must expect it.
#ifndef WHERRY_APP_TOOLS_JSON_VALUE_H_
#define WHERRY_APP_TOOLS_JSON_VALUE_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/tools/scanner.h"

namespace wherry::app {

// Reads a string and resolves its escapes; nothing if there is none, or it exceeds kMostMatched
// characters.
std::optional<std::string> json_name(Scanner& s);
// Emits the text of a value without leading white space; returns whether the value is complete.
// Outside of strings, the text `stop` ends the value, complete or not; it is not consumed.
bool json_value(Scanner& s, const Emit& emit, std::string_view stop = "");
// Emits the content of a string with its escapes resolved, for models that write the arguments
// object as a string.
bool json_unquoted(Scanner& s, const Emit& emit);

// Returns the type of a JSON text, by the rules of Python's json module: 'o'bject, 'a'rray,
// 's'tring, 'i'nteger, 'f'loat, 'b'oolean, 'n'ull, or 'c' for NaN and Infinity; 0 if the text is
// invalid.
char json_kind(std::string_view text);
bool is_json(std::string_view text);  // does not accept NaN and Infinity
// Returns a text as the content of a JSON string, without the quotes.
std::string json_escaped(std::string_view text);
// Returns a text as a JSON string, in quotes.
std::string json_string(std::string_view text);

// Appends a code point as UTF-8, or '?' for an unpaired surrogate.
void append_character(std::string& text, char32_t code);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_JSON_VALUE_H_
