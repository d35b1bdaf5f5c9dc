#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

// Whether a character may be part of a tool's name in a header.
bool of_header(char32_t code) {
  constexpr char32_t kFullwidthBar = 0xFF5C;  // part of DeepSeek's marks
  return code != kFullwidthBar && !unicode::is_space(code) &&
         (code > 0x7F ||
          std::string_view("{}[]<>\"'|:").find(static_cast<char>(code)) == std::string_view::npos);
}

// Whether a character may be part of a call's id.
bool of_id(char32_t code) {
  return (code >= '0' && code <= '9') || ((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
}

Texts without_left_space(Texts texts) {
  for (std::string& text : texts) text.erase(0, unicode::skip_left(text));
  return texts;
}

}  // namespace

Texts Headed::markers() const {
  Texts texts = begins();
  texts.insert(texts.end(), {before, tag, section_end});
  texts.insert(texts.end(), middle.begin(), middle.end());
  texts.insert(texts.end(), end.begin(), end.end());
  return not_empty(texts);
}

std::string Headed::example() const {
  const std::string number = id_is_header ? tag + "0" : "";
  return section + begin + before + "NAME" + number + middle[0] + "{ARGUMENTS}" +
         (end.empty() ? "" : end[0]) + section_end;
}

bool Headed::calls(Scanner& s, Output& out, const Tools&, const std::string& mark) const {
  if (mark != begin) {
    s.space();
    if (!s.accept(begin)) return false;
  }
  if (!call(s, out)) return false;
  for (Rounds rounds(s); rounds.next() && out.takes_more();) {
    s.space();
    if (!s.accept(begin)) break;
    if (!s.attempt([&] { return call(s, out); })) {
      out.text(begin);
      break;
    }
  }
  if (!section_end.empty()) s.accept(section_end);
  return true;
}

bool Headed::call(Scanner& s, Output& out) const {
  s.space();
  const bool prefixed = !before.empty() && s.accept(before);
  s.match(unicode::is_space);
  const std::string name = s.match(of_header);
  std::string given;
  if (!tag.empty() && s.accept(tag)) {
    given = s.match(of_id);
    if (!given.empty() && id_is_header) given = (prefixed ? before : "") + name + tag + given;
  }
  s.space();
  const auto behind = s.kept([&] { return without_left_space(middle); });
  if (name.empty() || !s.accept_one(*behind)) return false;
  const char32_t first = s.space();
  if (first != '{' && first != '"') return false;
  out.begin(name, given);
  arguments(s, out);
  return true;
}

void Headed::arguments(Scanner& s, Output& out) const {
  const auto ends = s.kept([&] { return without_left_space(end); });
  const bool complete = s.next() == '"'
                            ? json_unquoted(s, out.to_arguments())
                            : json_value(s, out.to_arguments(), ends->empty() ? "" : ends->back());
  out.end(complete);
  if (ends->empty()) return;
  s.space();
  s.accept_one(*ends);
}

Mistral::Mistral() {
  list.begin = {"[TOOL_CALLS]"};
  list.listed = list.form.ids = true;
  headed.begin = "[TOOL_CALLS]";
  headed.middle = {"[ARGS]", ""};
  headed.tag = "[CALL_ID]";
}

bool Mistral::calls(Scanner& s, Output& out, const Tools& tools, const std::string& mark) const {
  const char32_t first = s.space();
  const bool listed = first == '[' || first == '{' || first == kNoChar;
  return listed ? list.calls(s, out, tools, mark) : headed.calls(s, out, tools, mark);
}

}  // namespace wherry::app
