// Makes properties of patternProperties that match few names. A grammar writes each property once,
// but the names of a pattern again and again.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/grammar/schema/expression.h"
#include "app/grammar/schema/subschemas.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

using json::Value;
using json::Values;
using Items = std::vector<std::pair<Value, Value>>;

constexpr size_t kMostNames = 32;  // upper bound on the names of one pattern

// Adds all texts from a state on; returns false if there are too many.
bool add_texts(const Automaton& automaton, size_t state, const std::string& head,
               std::vector<std::string>& into) {
  if (automaton.states[state].ends) into.push_back(head);
  if (into.size() > kMostNames || head.size() > kMostNames * 8) return false;
  for (const auto& [set, to] : automaton.states[state].edges) {
    for (const auto& [low, high] : set) {
      if (high - low > kMostNames) return false;
      for (char32_t code = low; code <= high; ++code) {
        std::string text = head;
        unicode::append_code_point(text, code);
        if (!add_texts(automaton, to, text, into)) return false;
      }
    }
  }
  return true;
}

std::optional<std::vector<std::string>> names_of(const std::string& pattern, Texts& texts) {
  try {
    const Texts::Id set = expression(texts, pattern);
    if (texts.node(set).most == Texts::kUnbounded) return std::nullopt;
    const Automaton automaton = texts.automaton(set);
    std::vector<std::string> result;
    if (!automaton.states.empty() && !add_texts(automaton, 0, "", result)) return std::nullopt;
    return result;
  } catch (const NotEnforced&) {
    return std::nullopt;
  }
}

// Returns the items of a schema whose finite patterns are properties.
Items spelled_out(const Items& schema, Texts& texts) {
  Items properties, patterns;
  for (const auto& [name, value] : schema) {
    // What counts properties cannot be enforced where they are optional.
    if (name.text() == "minProperties" || name.text() == "maxProperties") return schema;
    if (name.text() == "properties" && value.is_dict()) properties = value.dict().items;
    if (name.text() == "patternProperties" && value.is_dict()) patterns = value.dict().items;
  }
  Items kept;
  for (const auto& [pattern, value] : patterns) {
    const auto names = names_of(pattern.text(), texts);
    if (!names) {
      kept.emplace_back(pattern, value);
      continue;
    }
    for (const std::string& one : *names) {
      const auto known = std::find_if(properties.begin(), properties.end(),
                                      [&](const auto& item) { return item.first.text() == one; });
      if (known == properties.end()) {
        properties.emplace_back(one, value);
      } else {
        known->second = json::make_dict({{"allOf", json::make_list({known->second, value})}});
      }
    }
  }
  if (kept.size() == patterns.size()) return schema;
  Items fields;
  for (const auto& item : schema) {
    const std::string& name = item.first.text();
    if (name != "properties" && name != "patternProperties") fields.push_back(item);
  }
  fields.emplace_back("properties", json::make_dict(std::move(properties)));
  if (!kept.empty()) fields.emplace_back("patternProperties", json::make_dict(std::move(kept)));
  return fields;
}

}  // namespace

Value with_finite_names(const Value& schema, Texts& texts) {
  if (!schema.is_dict()) return schema;
  const bool names = schema.dict().find("patternProperties") != nullptr;
  return with_parts(names ? json::make_dict(spelled_out(schema.dict().items, texts)) : schema,
                    [&](const Value& part, bool) { return with_finite_names(part, texts); });
}

}  // namespace wherry::app
