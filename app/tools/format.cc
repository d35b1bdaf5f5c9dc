#include "app/tools/format.h"

#include <algorithm>

namespace wherry::app {

namespace {

// Returns a member of an object; null if `object` is null, no object, or lacks the member.
const Value* member(const Value* object, std::string_view name) {
  return object != nullptr && object->is_dict() ? object->dict().find(name) : nullptr;
}

// Returns the strings of a list or, with `within`, the strings in that member of its objects.
Texts texts_of(const Value* list, const char* within) {
  Texts made;
  if (list == nullptr || !list->is_sequence()) return made;
  for (const Value& item : list->items()) {
    const Value* text = within == nullptr ? &item : member(&item, within);
    if (text != nullptr && text->is_string()) made.push_back(text->text());
  }
  return made;
}

}  // namespace

const Value* Tools::find(std::string_view name) const {
  for (const auto& [known, schema] : schemas_) {
    if (known == name) return &schema;
  }
  return nullptr;
}

bool Tools::declares(std::string_view name, std::string_view argument) const {
  const Value* properties = member(find(name), "properties");
  return properties == nullptr || !properties->is_dict() || member(properties, argument) != nullptr;
}

Texts Tools::kinds(std::string_view name, std::string_view argument) const {
  const Value* schema = member(member(find(name), "properties"), argument);
  const Value* type = member(schema, "type");
  if (type != nullptr && type->is_string()) return {type->text()};
  if (type != nullptr && type->is_sequence()) return texts_of(type, nullptr);
  Texts made = texts_of(member(schema, "anyOf"), "type");
  for (std::string& kind : texts_of(member(schema, "oneOf"), "type")) made.push_back(kind);
  const Value* values = member(schema, "enum");
  const bool listed = values != nullptr && values->is_sequence() && !values->items().empty();
  if (made.empty() && listed && texts_of(values, nullptr).size() == values->items().size()) {
    return {"string"};
  }
  return made;
}

bool Format::read(Scanner& s, Output& out, const Tools& tools, int& state) const {
  if (state == 0 && bare()) s.attempt([&] { return calls(s, out, tools, ""); });
  if (std::exchange(state, 1) == 0) return true;
  Texts marks = begins();
  const size_t marked = marks.size();
  for (std::string& text : silent()) marks.push_back(text);
  const size_t known = marks.size();
  if (!tools.held) {
    for (std::string& text : amid()) marks.push_back(text);
  }
  s.resumable = true;
  const std::optional<size_t> found = s.until(marks, out.to_text());
  s.resumable = false;
  if (!found) return false;
  if (*found >= marked && *found < known) return true;
  const std::string& mark = marks[*found];
  // Number of bytes of the mark that belong to the call.
  const size_t size = *found < marked ? 0 : mark.size();
  s.at -= size;
  const std::string begin = size == 0 ? mark : "";
  if (out.full() || !s.attempt([&] { return calls(s, out, tools, begin); })) {
    out.text(mark);
    s.at += size;
  }
  return true;
}

Texts not_empty(Texts texts) {
  texts.erase(std::remove(texts.begin(), texts.end(), ""), texts.end());
  return texts;
}

std::string Format::forced(Rules& rules, const CallRules& calls, bool several) const {
  return rules.text(begins()[0]) + " " + written(rules, calls, several);
}

std::string Format::free(Rules& rules, const CallRules& calls, bool several) const {
  return rules.amid_text({{begins()[0], written(rules, calls, false)}}, several);
}

std::string Format::answer(Rules&, const std::string& body) const { return body; }

}  // namespace wherry::app
