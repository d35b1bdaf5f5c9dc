// JSON to values and back, like Python's json module.
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
  std::optional<std::string> indent;  // per level
  std::string comma = ", ", colon = ": ";
  bool sort_keys = false;
};

// Fails for values without a JSON form. budget: pays for the text; may be null.
std::string to_json(const Value& value, const JsonStyle& style = {}, Budget* budget = nullptr);
// Without white space, as responses are sent.
std::string to_compact_json(const Value& value);

// Fails with Python's messages ("Expecting value: line 1 column 1 (char 0)"); nests at most 64
// deep. Half of a surrogate pair ("\ud800" without its other half) is not a character. It fails,
// too; or kKept keeps it as three bytes, like UTF-8's encoding, for a caller that reports its
// place.
enum class Halves { kFail, kKept };
Value from_json(std::string_view text, Halves halves = Halves::kFail);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_JSON_TEXT_H_
