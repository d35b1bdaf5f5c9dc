#include "app/request/complete_characters.h"

#include <optional>
#include <string>

#include "app/request/request_error.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

using json::Value;

// Upper bound on the characters of a path, because names in it may come from the client.
constexpr size_t kLongestPlace = 200;

// Whether a text contains D800 to DFFF encoded as three bytes: in valid UTF-8, A0 or more never
// follows ED.
bool has_half(std::string_view text) {
  for (size_t at = text.find('\xED'); at < text.size(); at = text.find('\xED', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0) return true;
  }
  return false;
}

// Returns the path of the first half of a surrogate pair; nothing if there is none.
std::optional<std::string> place_of_half(const Value& value, const std::string& where) {
  if (value.is_string()) return has_half(value.text()) ? std::optional(where) : std::nullopt;
  if (value.is_dict()) {
    for (const auto& [name, item] : value.dict().items) {
      if (auto match = place_of_half(name, where)) return match;
      const std::string inner = where.empty() ? name.text() : where + "." + name.text();
      if (auto match = place_of_half(item, inner)) return match;
    }
  } else if (value.is(json::Kind::kList)) {
    size_t i = 0;
    for (const Value& item : value.items()) {
      const std::string inner = item.is_number() ? "" : where + "[" + std::to_string(i) + "]";
      ++i;
      if (auto match = place_of_half(item, inner)) return match;
    }
  }
  return std::nullopt;
}

// Returns the text with each non-ASCII character replaced by a question mark.
std::string in_ascii(const std::string& place) {
  std::string result;
  size_t at = 0;
  for (size_t n = 0; at < place.size() && n < kLongestPlace; ++n) {
    const char32_t code = unicode::next_code_point(place, at);
    result += code < 0x80 ? static_cast<char>(code) : '?';
  }
  return result;
}

}  // namespace

void require_complete_characters(const Value& request) {
  const std::optional<std::string> place = place_of_half(request, "");
  if (!place) return;
  const std::string where = in_ascii(*place);
  throw RequestError((where.empty() ? "request" : where) +
                         " holds half of a surrogate pair (as \\ud800), which is no character: a "
                         "text was cut in the middle of one",
                     where);
}

}  // namespace wherry::app
