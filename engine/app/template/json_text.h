// JSON to values and back, as Python's json module does it.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_JSON_TEXT_H_
#define WHERRY_ENGINE_APP_TEMPLATE_JSON_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/template/budget.h"
#include "app/template/value.h"

namespace wherry::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // of one level
  std::string comma = ", ", colon = ": ";
  bool sort_keys = false;
};

// Fails for what JSON does not have. budget: pays for it, or null.
std::string to_json(const Value& value, const JsonStyle& style = {}, Budget* budget = nullptr);
// Without white space, as answers are sent.
std::string to_compact_json(const Value& value);

// Fails with Python's words ("Expecting value: line 1 column 1 (char 0)"); nests at most 64 deep.
// Half of a surrogate pair ("\ud800" without its other half), which is no character, fails too, or
// is kept as the three bytes that UTF-8 would have for it: for who says where it was.
enum class Halves { kFail, kKept };
Value from_json(std::string_view text, Halves halves = Halves::kFail);

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_JSON_TEXT_H_
