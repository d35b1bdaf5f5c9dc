// The tool's schema determines how the text of an element becomes a value. If the value can only be
// a string, the text is its content. Otherwise, the text is parsed as JSON and, if that fails,
// becomes a string.
#include <algorithm>

#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"
#include "app/tools/python_value.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

// Whether a character may be part of a tool's or argument's name.
bool of_name(char32_t code) {
  return !unicode::is_space(code) &&
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

// Returns a text without white space at its ends.
std::string stripped(const std::string& text) {
  const size_t start = unicode::skip_left(text), end = unicode::skip_right(text);
  return start < end ? text.substr(start, end - start) : "";
}

// Returns an element's text as a JSON value of one of the types `kinds` (names of JSON Schema).
std::string as_json(const std::string& text, const Texts& kinds) {
  const std::string value = stripped(text);
  if (has(kinds, "string") && !is_of(value, kinds)) return json_string(text);
  if (value == "True") return "true";
  if (value == "False") return "false";
  if (value == "None") return "null";
  if (is_json(value)) return value;
  // Some templates print values in Python syntax, so models write it, too.
  return complete_python_value(value).value_or(json_string(text));
}

std::string joined(const Texts& texts, const std::string& between) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "" : between) + text;
  return result;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.npos, end) == 0;
}

}  // namespace

Texts Markup::markers() const {
  Texts texts = {outer, outer_end, call, call_end, key, ended};
  for (const std::string& text : keyed) texts.push_back(text == ">" ? "" : text);
  return not_empty(texts);
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
  for (Rounds rounds(s); several && rounds.next() && out.takes_more();) {
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
    if (!s.look([&] { return s.accept(key) || s.accept(outer_end); })) return false;
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
  const auto content = s.kept_text();
  s.until(Marks({ended}), s.to(content));
  const std::string text = stripped(*content);
  s.space();
  if (text.empty() || text[0] != '{' || !is_json(text) || !s.accept(call_end)) return false;
  out.arguments(text);
  out.end();
  return true;
}

void Markup::arguments(Scanner& s, Output& out, const Tools& tools, const std::string& name) const {
  if (!wrappers.empty() && s.attempt([&] { return wrapped(s, out, tools, name); })) return;
  out.arguments("{");
  bool first = true;
  for (Rounds rounds(s); rounds.next(first); first = false) {
    s.space();
    if (!s.accept(key)) break;
    const std::string argument = s.match(of_name);
    const std::string attributes = behind_key(s);
    out.arguments((first ? "" : ", ") + json_string(argument) + ": ");
    const auto form = s.kept([&] { return form_of(tools, name, argument, attributes); });
    if (!value(s, out.to_arguments(), *form)) return out.end(false);
  }
  const std::string& closing = call_end.empty() ? outer_end : call_end;
  const bool closed = call_end.empty() ? s.comes(closing) : s.accept(closing);
  if (!closed && s.ends_within({key, closing})) return out.end(false);
  out.arguments("}");
  out.end();
}

// Returns how the value of an argument is to be read. attributes: those of its element.
Markup::ValueForm Markup::form_of(const Tools& tools, const std::string& name,
                                  const std::string& argument,
                                  const std::string& attributes) const {
  Texts ends = {ended};
  if (!tools.constrained) ends.insert(ends.end(), unclosed.begin(), unclosed.end());
  if (attributes.find("string=\"") == attributes.npos) {
    return {tools.kinds(name, argument), Marks(std::move(ends))};
  }
  const bool text = attributes.find("string=\"true\"") != attributes.npos;
  return {{text ? "string" : "object"}, Marks(std::move(ends))};
}

// Reads an element's value and emits it as JSON; returns whether it is complete. Of the texts that
// may end it, it consumes only the first.
bool Markup::value(Scanner& s, const Emit& emit, const ValueForm& form) const {
  if (!pad.empty()) s.accept(pad);
  const bool is_text = form.kinds == Texts{"string"};
  const auto text = s.kept_text();  // of a string only what may be the `pad` at its end
  if (is_text) emit("\"");
  const std::optional<size_t> match = s.until(form.ends, [&](std::string_view piece) {
    *text += piece;
    if (!is_text) return;
    const size_t size = text->size() - (ends_with(*text, pad) ? pad.size() : 0);
    emit(json_escaped(std::string_view(*text).substr(0, size)));
    text->erase(0, size);
  });
  if (match && *match > 0) s.at -= form.ends[*match].size();
  if (is_text) {
    emit(match ? "\"" : json_escaped(*text));
  } else if (match) {
    const size_t padded = ends_with(*text, pad) ? pad.size() : 0;
    emit(as_json(text->substr(0, text->size() - padded), form.kinds));
  }
  return match.has_value();
}

}  // namespace wherry::app
