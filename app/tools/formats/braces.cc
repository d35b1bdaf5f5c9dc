#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"
#include "app/tools/python_value.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

// Whether a character may be part of a tool's name.
bool of_dotted(char32_t code) { return code == '.' || code == '-' || of_python_name(code); }

// Whether a character may be part of an argument's name.
bool of_braced_key(char32_t code) {
  return !unicode::is_space(code) &&
         (code > 0x7F ||
          std::string_view(":{}[],<").find(static_cast<char>(code)) == std::string_view::npos);
}

}  // namespace

bool Braces::calls(Scanner& s, Output& out, const Tools&, const std::string&) const {
  s.space();
  s.accept(":");  // models sometimes misplace the colon or omit "call"
  s.accept("call:");
  const std::string name = s.match(of_dotted);
  if (name.empty() || !s.accept("{")) return false;
  out.begin(name);
  out.arguments("{");
  out.end(arguments(s, out));
  s.space();
  s.accept(end);
  return true;
}

bool Braces::arguments(Scanner& s, Output& out) const {
  bool first = true;
  for (Rounds rounds(s); rounds.next(first); first = false) {
    char32_t code = s.space();
    if (code == ',' && !first) {
      ++s.at;
      code = s.space();
    }
    if (code == '}') {
      ++s.at;
      break;
    }
    const bool quoted = s.accept(quote);
    const std::string key = s.match(of_braced_key);
    if (quoted) s.accept(quote);
    if (key.empty() || s.space() != ':') return false;
    ++s.at;
    out.arguments((first ? "" : ", ") + json_string(key) + ": ");
    if (!python_value(s, out.to_arguments(), quote)) return false;
  }
  out.arguments("}");
  return true;
}

Texts Pythonic::markers() const {
  Texts texts = begin;
  texts.push_back(end);
  return not_empty(texts);
}

std::string Pythonic::example() const {
  const std::string call = brackets ? "[NAME(KEY=VALUE)]" : "NAME(KEY=VALUE)";
  return (begin.empty() ? "" : begin[0]) + call + end;
}

std::string Pythonic::history(const std::vector<std::pair<std::string, Value>>& calls) const {
  std::string result;
  for (const auto& [name, arguments] : calls) {
    std::string pairs;
    for (const auto& [key, value] : arguments.dict().items) {
      pairs += (pairs.empty() ? "" : ", ") + key.text() + "=" + json::repr(value);
    }
    result += (result.empty() ? "" : brackets ? ", " : "\n") + name + "(" + pairs + ")";
  }
  return (begin.empty() ? "" : begin[0]) + (brackets ? "[" + result + "]" : result) + end;
}

bool Pythonic::calls(Scanner& s, Output& out, const Tools& tools, const std::string& mark) const {
  const bool listed = s.space() == '[';
  if (mark.empty() && !listed) return false;
  s.at += listed;
  const Tools* known = mark.empty() ? &tools : nullptr;
  if (!call(s, out, known)) return false;
  for (Rounds rounds(s); rounds.next() && out.takes_more();) {
    if (s.space() == ',') {
      ++s.at;
      s.space();
    }
    if (!s.attempt([&] { return call(s, out, known); })) break;
  }
  if (listed && s.space() == ']') ++s.at;
  if (!mark.empty() && !end.empty()) {
    s.space();
    s.accept(end.substr(unicode::skip_left(end)));
  }
  return true;
}

bool Pythonic::call(Scanner& s, Output& out, const Tools* known) {
  s.space();
  const std::string name = s.match(begins_python_name, of_dotted);
  if (name.empty() || (known != nullptr && !known->has(name)) || !s.accept("(")) return false;
  out.begin(name);
  out.arguments("{");
  out.end(arguments(s, out));
  return true;
}

bool Pythonic::arguments(Scanner& s, Output& out) {
  json::JsonStyle ascii;
  ascii.ensure_ascii = true;
  bool first = true;
  for (Rounds rounds(s); rounds.next(first); first = false) {
    char32_t code = s.space();
    if (code == ',' && !first) {
      ++s.at;
      code = s.space();
    }
    if (code == ')') {
      ++s.at;
      break;
    }
    const std::string key = s.match(begins_python_name, of_python_name);
    const std::string written = (first ? "" : ", ") + json::to_json(Value(key), ascii);
    if (key.empty() || s.space() != '=') {
      if (!key.empty()) out.arguments(written);
      return false;
    }
    ++s.at;
    out.arguments(written + ": ");
    if (!python_argument(s, out.to_arguments())) return false;
  }
  out.arguments("}");
  return true;
}

}  // namespace wherry::app
