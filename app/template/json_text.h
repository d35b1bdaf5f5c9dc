// Converts JSON to values and back, as Python's json module does.
#ifndef WHERRY_APP_TEMPLATE_JSON_TEXT_H_
#define WHERRY_APP_TEMPLATE_JSON_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/template/budget.h"
#include "app/template/value.h"

namespace wherry::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // indentation per level; none writes one line
  std::string comma = ", ", colon = ": ";
  bool sort_keys = false;
};

// Returns a value as JSON; fails for values without a JSON form. budget: pays for the text; may be
// null.
std::string to_json(const Value& value, const JsonStyle& style = {}, Budget* budget = nullptr);
// Returns a value as JSON without white space, as responses are sent.
std::string to_compact_json(const Value& value);

// What to do with half of a surrogate pair ("\ud800" without its other
// half), which is not a character: kFail makes it an error; kKept keeps it
// as three bytes, in the manner of UTF-8, for a caller that reports its
// place.
enum class Halves { kFail, kKept };
Value from_json(std::string_view text, Halves halves = Halves::kFail);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_JSON_TEXT_H_
