// The tool's schema determines how the text of an element becomes a value. If the value can only be
// a string, the text is its content. Otherwise, the text is parsed as JSON and, if that fails,
// becomes a string.
#include <algorithm>

#include "app/template/code_points.h"
#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"
#include "app/tools/python_value.h"

namespace wherry::app {

namespace {

// Whether a character may be part of a tool's or argument's name.
bool of_name(char32_t code) {
  return !jinja::is_space(code) &&
         (code > 0x7F ||
          std::string_view("<>\"'=|{}").find(static_cast<char>(code)) == std::string_view::npos);
}

bool of_attributes(char32_t code) { return code != '<' && code != '>'; }

bool has(const Texts& kinds, const std::string& kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Whether a text is JSON of one of the types `kinds` other than string.
bool is_of(std::string_view text, const Texts& kinds) {
  switch (json_kind(text)) {
    case 'i':
      return has(kinds, "integer") || has(kinds, "number");
    case 'f':
    case 'c':
      return has(kinds, "number");
    case 'b':
      return has(kinds, "boolean");
    case 'n':
      return has(kinds, "null");
    case 'o':
      return has(kinds, "object");
    case 'a':
      return has(kinds, "array");
    default:
      return false;
  }
}

// Returns an element's text as a JSON value of one of the types `kinds`, see above.
std::string as_json(const std::string& text, const Texts& kinds) {
  const size_t start = jinja::skip_left(text), end = jinja::skip_right(text);
  const std::string bare = start < end ? text.substr(start, end - start) : "";
  if (has(kinds, "string") && !is_of(bare, kinds)) return json_string(text);
  if (bare == "True") return "true";
  if (bare == "False") return "false";
  if (bare == "None") return "null";
  if (is_json(bare)) return bare;
  // Some templates print values in Python syntax, so models write it, too.
  return python_whole(bare).value_or(json_string(text));
}

std::string joined(const Texts& texts, const std::string& between) {
  std::string made;
  for (const std::string& text : texts) made += (made.empty() ? "" : between) + text;
  return made;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.npos, end) == 0;
}

// Emits the content of a JSON string, except for a final `pad`, which it holds back.
class Held {
 public:
  Held(const Emit& emit, const std::string& pad) : emit_(emit), pad_(pad) {}
  void push(std::string_view text) {
    text_ += text;
    const size_t kept = !pad_.empty() && ends_with(text_, pad_) ? pad_.size() : 0;
    emit_(json_escaped(std::string_view(text_).substr(0, text_.size() - kept)));
    text_.erase(0, text_.size() - kept);
  }
  void flush() { emit_(json_escaped(text_)); }

 private:
  const Emit& emit_;
  const std::string& pad_;
  std::string text_;
};

}  // namespace

Texts Markup::markers() const {
  Texts made = {outer, outer_end, call, call_end, key, ended};
  for (const std::string& text : keyed) made.push_back(text == ">" ? "" : text);
  return not_empty(made);
}

std::string Markup::example() const {
  const std::string element = key + "KEY" + (typed ? "\" string=\"true\"" : "") +
                              joined(keyed, line) + pad + "VALUE" + pad + ended + line;
  const std::string name = call.empty() ? "NAME" : line + call + "NAME" + named + line;
  return outer + name + element + (call.empty() ? "" : call_end + line) + outer_end;
}

bool Markup::calls(Scanner& s, Output& out, const Tools& tools, const std::string& mark) const {
  if (!call.empty() && mark != call) {
    s.space();
    if (!s.accept(call)) return false;
  }
  if (!one(s, out, tools)) return false;
  while (several && !out.full()) {
    s.space();
    if (!s.accept(call)) break;
    if (!s.attempt([&] { return one(s, out, tools); })) {
      out.text(call);
      break;
    }
  }
  s.space();
  s.accept(outer_end);
  return true;
}

bool Markup::one(Scanner& s, Output& out, const Tools& tools) const {
  s.space();
  const std::string name = s.match(of_name);
  if (name.empty()) return false;
  if (!call.empty()) {
    if (!s.accept(named)) return false;
  } else {  // an argument or the end must follow the name
    s.space();
    const size_t at = s.at;
    if (!s.accept_one({key, outer_end})) return false;
    s.at = at;
  }
  out.begin(name);
  arguments(s, out, tools, name);
  return true;
}

// Consumes the texts between an argument's name and its value; returns the attributes among them.
std::string Markup::behind_key(Scanner& s) const {
  std::string attributes = typed ? s.match(of_attributes) : "";
  for (const std::string& literal : keyed) {
    s.space();
    s.accept(literal);
  }
  return attributes;
}

// Reads an argument that contains the object of all arguments, and the end of the call; returns
// whether there was such an argument, see `wrappers`.
bool Markup::wrapped(Scanner& s, Output& out, const Tools& tools, const std::string& name) const {
  s.space();
  if (!s.accept(key)) return false;
  const std::string argument = s.match(of_name);
  if (!has(wrappers, argument) || tools.declares(name, argument)) return false;
  behind_key(s);
  std::string text;
  s.until({ended}, [&](std::string_view piece) { text += piece; });
  const size_t start = jinja::skip_left(text), end = jinja::skip_right(text);
  text = start < end ? text.substr(start, end - start) : "";
  s.space();
  if (text.empty() || text[0] != '{' || !is_json(text) || !s.accept(call_end)) return false;
  out.arguments(text);
  out.end();
  return true;
}

void Markup::arguments(Scanner& s, Output& out, const Tools& tools, const std::string& name) const {
  if (!wrappers.empty() && s.attempt([&] { return wrapped(s, out, tools, name); })) return;
  out.arguments("{");
  for (bool first = true;; first = false) {
    s.space();
    if (!s.accept(key)) break;
    const std::string argument = s.match(of_name);
    const std::string attributes = behind_key(s);
    Texts types = tools.kinds(name, argument);
    if (attributes.find("string=\"") != attributes.npos) {
      types = {attributes.find("string=\"true\"") != attributes.npos ? "string" : "object"};
    }
    out.arguments((first ? "" : ", ") + json_string(argument) + ": ");
    Texts ends = {ended};
    if (!tools.held) ends.insert(ends.end(), unclosed.begin(), unclosed.end());
    if (!value(s, out.to_arguments(), types, ends)) return out.end(false);
  }
  const std::string& closing = call_end.empty() ? outer_end : call_end;
  const bool closed = call_end.empty() ? s.comes(closing) : s.accept(closing);
  const auto begun = [&](const std::string& mark) {
    return mark.compare(0, s.rest().size(), s.rest()) == 0;
  };
  if (!closed && s.ended && (begun(key) || begun(closing))) {
    s.at = s.text.size();  // the output ended within a mark
    return out.end(false);
  }
  out.arguments("}");
  out.end();
}

// Emits the text before one of `ends`, and consumes that literal only if it is ends[0]; returns
// whether there was one.
static bool up_to_end(Scanner& s, const Emit& emit, const Texts& ends) {
  const std::optional<size_t> found = s.until(ends, emit);
  if (found && *found > 0) s.at -= ends[*found].size();
  return found.has_value();
}

// Reads an element's value and emits it as JSON; returns whether it is complete.
bool Markup::value(Scanner& s, const Emit& emit, const Texts& types, const Texts& ends) const {
  if (!pad.empty()) s.accept(pad);
  if (types == Texts{"string"}) {
    emit("\"");
    Held held(emit, pad);
    const bool found = up_to_end(s, [&](std::string_view text) { held.push(text); }, ends);
    if (found) {
      emit("\"");
    } else {
      held.flush();
    }
    return found;
  }
  std::string text;
  if (!up_to_end(s, [&](std::string_view piece) { text += piece; }, ends)) return false;
  if (!pad.empty() && ends_with(text, pad)) text.resize(text.size() - pad.size());
  emit(as_json(text, types));
  return true;
}

}  // namespace wherry::app
