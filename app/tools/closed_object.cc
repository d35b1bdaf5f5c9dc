// Closes JSON that was cut, as max_tokens cuts the arguments of a call.
#include <string>
#include <vector>

#include "app/tools/history_steps.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

// The state of a scan over the beginning of a JSON text.
struct Scan {
  std::string open;         // the closing marks that are due, innermost last
  bool in_text = false;     // inside a string
  size_t escape = 0;        // 1 + the position of the last escape in the current string
  bool escape_ends = true;  // whether that escape is complete
  // Lengths at which the text may end, with the marks that are due there.
  std::vector<std::pair<size_t, std::string>> ends;
};

size_t escape_length(const std::string& text, size_t at) {
  return at + 1 < text.size() && text[at + 1] == 'u' ? 6 : 2;
}

Scan scanned(const std::string& text) {
  Scan result;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (result.in_text) {
      if (c == '\\') {
        result.escape = at + 1;
        const size_t length = escape_length(text, at);
        result.escape_ends = at + length <= text.size();
        at += length - 1;
      } else if (c == '"') {
        result.in_text = false;
      }
    } else if (c == '"') {
      result.in_text = true;
      result.escape = 0;
      result.escape_ends = true;
    } else if (c == '{' || c == '[') {
      result.open += c == '{' ? '}' : ']';
      result.ends.emplace_back(at + 1, result.open);
    } else if (c == '}' || c == ']') {
      if (result.open.empty()) break;
      result.open.pop_back();
    } else if (c == ',') {
      result.ends.emplace_back(at, result.open);
    }
  }
  return result;
}

Value object_in(std::string text, const std::string& open) {
  text.append(open.rbegin(), open.rend());
  try {
    Value value = json::from_json(text);
    return value.is_dict() ? value : Value();
  } catch (const json::Failure&) {
    return Value();
  }
}

}  // namespace

Value closed_object(const std::string& text) {
  const Scan scan = scanned(text);
  if (scan.open.empty() || scan.open[0] != '}') return Value();
  std::string complete = text;
  if (scan.in_text && !scan.escape_ends) complete.resize(scan.escape - 1);
  Value value = object_in(complete + (scan.in_text ? "\"" : ""), scan.open);
  if (value.is_none() && scan.in_text && scan.escape > 0) {  // half of a surrogate pair
    value = object_in(text.substr(0, scan.escape - 1) + "\"", scan.open);
  }
  // Otherwise a name, a number or a literal is cut, which is left out. Two attempts are enough: the
  // text before a comma is complete, and so is an empty object or list.
  for (size_t i = scan.ends.size(), tries = 0; value.is_none() && i > 0 && tries < 2; ++tries) {
    --i;
    value = object_in(text.substr(0, scan.ends[i].first), scan.ends[i].second);
  }
  return value;
}

}  // namespace wherry::app
