// Converts JSON to values and back, as Python's json module does.
#ifndef WHERRY_APP_VALUE_JSON_TEXT_H_
#define WHERRY_APP_VALUE_JSON_TEXT_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/value/json_scan.h"
#include "app/value/value.h"

namespace wherry::json {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // indentation per level; none writes one line
  std::string comma = ", ", colon = ": ";
  bool sort_keys = false;
};

// Returns a value as JSON; fails for values without a JSON form. check: if given, is called with a
// lower bound on the characters of the text as it grows, and may throw.
std::string to_json(const Value& value, const JsonStyle& style = {},
                    const std::function<void(size_t)>& check = nullptr);
// Returns a value as JSON without white space, as responses are sent.
std::string to_compact_json(const Value& value);

// Parses a text; fails with json_error() if it is not JSON.
Value from_json(std::string_view text, Halves halves = Halves::kFail);

}  // namespace wherry::json

#endif  // WHERRY_APP_VALUE_JSON_TEXT_H_
