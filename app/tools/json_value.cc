#include "app/tools/json_value.h"

#include "app/value/code_points.h"
#include "app/value/json_scan.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

// First high surrogate, first low surrogate, first code point after the surrogates.
constexpr int kHigh = 0xD800, kLow = 0xDC00, kPastSurrogates = 0xE000;

// Returns a string's content with its escapes resolved, and '?' for halves of surrogate pairs;
// nothing if an escape is invalid. Control characters are allowed, as with Python's
// json.loads(strict=False).
std::optional<std::string> unescaped(std::string_view inner) {
  const std::string quoted = "\"" + std::string(inner) + "\"";
  json::JsonRules rules;
  rules.halves = json::Halves::kKept;
  rules.controls = true;
  if (json::json_error(quoted, rules)) return std::nullopt;
  std::string buffer, text;
  size_t at = 0;
  const std::string_view kept = json::read_string(quoted, at, buffer);
  for (at = 0; at < kept.size();) append_character(text, unicode::next_code_point(kept, at));
  return text;
}

// Emits a string as it is, after its opening quote was consumed; returns whether it is complete.
bool quoted(Scanner& s, const Emit& emit) {
  emit("\"");
  for (Rounds rounds(s); rounds.next();) {
    const char match = s.until_any("\"\\", emit);
    if (match == '\0') return false;
    if (match == '"') break;
    emit("\\" + s.take(1));
  }
  emit("\"");
  return true;
}

// Emits an object or array as it is, up to its end or `stop`; returns whether it is complete.
bool bracketed(Scanner& s, const Emit& emit, std::string_view stop) {
  const std::string special = "\"{}[]" + std::string(stop.substr(0, 1));
  int depth = 0;
  for (Rounds rounds(s); rounds.next(depth);) {
    const char match = s.until_any(special, emit);
    if (match == '\0') return false;
    if (!stop.empty() && match == stop[0]) {
      --s.at;
      if (s.comes(stop)) return false;
      ++s.at;
    }
    if (match == '"') {
      if (!quoted(s, emit)) return false;
      continue;
    }
    emit(std::string_view(&match, 1));
    depth += (match == '{' || match == '[') - (match == '}' || match == ']');
    if (depth <= 0 && std::string_view("{[}]").find(match) != std::string_view::npos) return true;
  }
  return false;
}

bool ends_scalar(char32_t code) {
  return code == ',' || code == '}' || code == ']' || unicode::is_space(code);
}

// Consumes an escape after its backslash; returns the character that it stands for, or the escape
// itself if it is invalid.
std::string meant(Scanner& s) {
  const std::string escape = s.take(s.next() == 'u' ? 5 : 1);
  const int high = escape.substr(0, 1) == "u" ? json::hex4(escape, 1) : -1;
  if (high < kHigh || high >= kLow || !s.accept("\\u")) {
    return unescaped("\\" + escape).value_or("\\" + escape);
  }
  const std::string low = s.take(4);
  const std::optional<std::string> pair = unescaped("\\" + escape + "\\u" + low);
  return pair ? *pair : "\xEF\xBF\xBD\\u" + low;
}

}  // namespace

void append_character(std::string& text, char32_t code) {
  if (code >= char32_t{kHigh} && code < char32_t{kPastSurrogates}) {
    text += '?';
  } else {
    unicode::append_code_point(text, code);
  }
}

std::optional<std::string> json_name(Scanner& s) {
  if (s.space() != '"') return std::nullopt;
  ++s.at;
  size_t count = 1;
  const auto inner = s.kept_text();
  const Emit keep = s.to(inner);
  for (Rounds rounds(s); count <= kMostMatched && rounds.next(count); ++count) {
    const std::string taken = s.take(1);
    if (taken == "\"") return unescaped(*inner);
    if (taken.empty()) break;
    keep(taken);
    if (taken != "\\") continue;
    keep(s.take(1));
    ++count;
  }
  return std::nullopt;
}

bool json_value(Scanner& s, const Emit& emit, std::string_view stop) {
  const char32_t first = s.space();
  if (first == '"') {
    ++s.at;
    return quoted(s, emit);
  }
  if (first == '{' || first == '[') return bracketed(s, emit, stop);
  for (Rounds rounds(s); rounds.next();) {
    const char32_t code = s.next();
    if (code == kNoChar) return false;
    if (ends_scalar(code) || (!stop.empty() && s.comes(stop))) break;
    emit(s.take(1));
  }
  return true;
}

bool json_unquoted(Scanner& s, const Emit& emit) {
  ++s.at;
  for (Rounds rounds(s); rounds.next();) {
    const char match = s.until_any("\"\\", emit);
    if (match == '\0') return false;
    if (match == '"') break;
    emit(meant(s));
  }
  return true;
}

std::string json_string(std::string_view text) { return json::to_json(json::Value(text)); }

std::string json_escaped(std::string_view text) {
  const std::string quoted = json_string(text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace wherry::app
