// Converts literals in Python syntax, or similar texts that models write, to JSON.
#ifndef WHERRY_APP_TOOLS_PYTHON_VALUE_H_
#define WHERRY_APP_TOOLS_PYTHON_VALUE_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/tools/scanner.h"

namespace wherry::app {

// Whether a character may begin a Python name, and whether it may be part of one.
bool begins_python_name(char32_t code);
bool of_python_name(char32_t code);

// Reads a value and emits it as JSON; returns whether it is complete. quote: an additional string
// delimiter, which strings cannot contain; "" for none.
bool python_value(Scanner& s, const Emit& emit, const std::string& quote);
// Reads the value of a keyword argument in a call in Python syntax and emits it as JSON; returns
// whether it is complete.
bool python_argument(Scanner& s, const Emit& emit);

// Converts a text that is one list, tuple, set or dictionary to JSON; nothing for other texts.
std::optional<std::string> complete_python_value(std::string_view text);

// Converts a number in Python syntax, such as "0x1F", "1_000" or ".5", to JSON; nothing if it is
// invalid.
std::optional<std::string> python_number(std::string_view word);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_PYTHON_VALUE_H_
