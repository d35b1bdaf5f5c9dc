// JSON as models write it, handed on piece by piece.
//
// Values are not validated: brackets and strings say where they end. What a model wrote wrongly
// inside them stays as it wrote it, as with OpenAI, whose clients must expect that.
#ifndef WHERRY_ENGINE_APP_TOOLS_JSON_VALUE_H_
#define WHERRY_ENGINE_APP_TOOLS_JSON_VALUE_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/tools/scanner.h"

namespace wherry::app {

// Takes a string: its value; nothing if there is none, or it is longer than a name may be.
std::optional<std::string> json_name(Scanner& s);
// Hands on a value's text, white space before it left out; whether it came to its end. stop: where
// this comes outside of strings the value has ended, whole or not; it is not taken.
bool json_value(Scanner& s, const Emit& emit, std::string_view stop = "");
// Hands on what a string says, escapes resolved: some models write arguments as a string.
bool json_unquoted(Scanner& s, const Emit& emit);

// What a whole text is, if it is JSON as Python's json module reads it: 'o'bject, 'a'rray,
// 's'tring, 'i'nteger, 'f'loat, 'b'oolean, 'n'ull, or 'c' for NaN and Infinity; 0 if it is not.
char json_kind(std::string_view text);
bool is_json(std::string_view text);  // constants that JSON does not have left out
// A text as it stands in a string of JSON, without the quotes.
std::string json_escaped(std::string_view text);
std::string json_string(std::string_view text);

// The same character by its number; '?' for half of one.
void append_character(std::string& text, char32_t code);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_JSON_VALUE_H_
