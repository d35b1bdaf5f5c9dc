// Literals of Python, and what looks like them, handed on as JSON.
#ifndef WHERRY_ENGINE_APP_TOOLS_PYTHON_VALUE_H_
#define WHERRY_ENGINE_APP_TOOLS_PYTHON_VALUE_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/tools/scanner.h"

namespace wherry::app {

bool begins_python_name(char32_t code);
bool of_python_name(char32_t code);

// Hands on a value; whether it came to its end. quote: what stands around strings beside Python's
// own quotes, and never in them.
bool python_value(Scanner& s, const Emit& emit, const std::string& quote);
// The same of an argument of a call in Python's words.
bool python_argument(Scanner& s, const Emit& emit);

// A text that is one list, tuple or dictionary, as JSON; nothing if it is not.
std::optional<std::string> python_whole(std::string_view text);

// A number in Python's words that JSON does not know ("0x1F", "1_000", ".5"), as JSON.
std::optional<std::string> python_number(std::string_view word);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_PYTHON_VALUE_H_
