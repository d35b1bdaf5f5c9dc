#include "app/tools/format.h"

#include <algorithm>
#include <iterator>

#include "app/value/json_text.h"

namespace wherry::app {

namespace {

// Returns a member of an object; null if `object` is null, no object, or lacks the member.
const Value* member(const Value* object, std::string_view name) {
  return object != nullptr && object->is_dict() ? object->dict().find(name) : nullptr;
}

// Returns the strings of a list or, with `within`, the strings in that member of its objects.
Texts texts_of(const Value* list, const char* within) {
  Texts texts;
  if (list == nullptr || !list->is_sequence()) return texts;
  for (const Value& item : list->items()) {
    const Value* text = within == nullptr ? &item : member(&item, within);
    if (text != nullptr && text->is_string()) texts.push_back(text->text());
  }
  return texts;
}

// What ends free text: first Format::begins, then Format::silent, then Format::amid.
struct EndsOfText {
  Marks all;
  size_t begins, known;  // number of the first, and of the first two
};

EndsOfText marks_of(const Format& format, bool constrained) {
  Texts texts = format.begins();
  const auto add = [&](Texts more) {
    std::move(more.begin(), more.end(), std::back_inserter(texts));
    return texts.size();
  };
  const size_t begins = texts.size(), known = add(format.silent());
  if (!constrained) add(format.amid());
  return {Marks(std::move(texts)), begins, known};
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
  Texts texts = texts_of(member(schema, "anyOf"), "type");
  for (std::string& kind : texts_of(member(schema, "oneOf"), "type")) texts.push_back(kind);
  const Value* values = member(schema, "enum");
  const bool listed = values != nullptr && values->is_sequence() && !values->items().empty();
  if (texts.empty() && listed && texts_of(values, nullptr).size() == values->items().size()) {
    return {"string"};
  }
  return texts;
}

void Format::read(Scanner& s, Output& out, const Tools& tools) const {
  if (bare()) s.attempt([&] { return calls(s, out, tools, ""); });
  const auto marks = s.kept([&] { return marks_of(*this, tools.constrained); });
  for (Rounds rounds(s); rounds.next();) {
    const std::optional<size_t> match = s.until(marks->all, out.to_text());
    if (!match) return;
    if (*match >= marks->begins && *match < marks->known) continue;
    const std::string& mark = marks->all[*match];
    // Number of bytes of the mark that belong to the call.
    const size_t size = *match < marks->begins ? 0 : mark.size();
    s.at -= size;
    const std::string begin = size == 0 ? mark : "";
    if (!out.takes_more() || !s.attempt([&] { return calls(s, out, tools, begin); })) {
      out.text(mark);
      s.at += size;
    }
  }
}

Texts not_empty(Texts texts) {
  texts.erase(std::remove(texts.begin(), texts.end(), ""), texts.end());
  return texts;
}

std::string Format::history(const std::vector<std::pair<std::string, Value>>& calls) const {
  static constexpr std::string_view kName = "NAME", kArguments = "{ARGUMENTS}";
  const std::string pattern = example();
  const size_t name_at = pattern.find(kName), at = pattern.find(kArguments);
  std::string result;
  for (const auto& [name, arguments] : calls) {
    if (!result.empty()) result += '\n';
    const std::string object = json::to_json(arguments);
    if (name_at == pattern.npos || at == pattern.npos || at < name_at) {
      result += "{\"name\": " + json::to_json(Value(name)) + ", \"arguments\": " + object + "}";
      continue;
    }
    const size_t behind = name_at + kName.size();
    result += pattern.substr(0, name_at) + name + pattern.substr(behind, at - behind) + object +
              pattern.substr(at + kArguments.size());
  }
  return result;
}

std::string Format::forced(Rules& rules, const CallRules& calls, bool several) const {
  return rules.text(begins()[0]) + " " + written(rules, calls, several);
}

std::string Format::free(Rules& rules, const CallRules& calls, bool several) const {
  return rules.amid_text({{begins()[0], written(rules, calls, false)}}, several);
}

std::string Format::answer(Rules&, const std::string& body) const { return body; }

}  // namespace wherry::app
