// Reads literals in Python syntax, and similar texts, and emits them as JSON.
#ifndef WHERRY_APP_TOOLS_PYTHON_VALUE_H_
#define WHERRY_APP_TOOLS_PYTHON_VALUE_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/tools/scanner.h"

namespace wherry::app {

bool begins_python_name(char32_t code);
bool of_python_name(char32_t code);

// Emits a value; returns whether it is complete. quote: an additional string delimiter, which
// strings never contain.
bool python_value(Scanner& s, const Emit& emit, const std::string& quote);
// The same for an argument of a call in Python syntax.
bool python_argument(Scanner& s, const Emit& emit);

// Converts a text that is one list, tuple or dictionary to JSON; nothing if it is not.
std::optional<std::string> python_whole(std::string_view text);

// Converts a number in Python syntax that JSON lacks ("0x1F", "1_000", ".5") to JSON.
std::optional<std::string> python_number(std::string_view word);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_PYTHON_VALUE_H_
