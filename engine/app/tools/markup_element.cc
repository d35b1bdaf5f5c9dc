#include "app/tools/markup_element.h"

#include <algorithm>
#include <set>

namespace wherry::app {

namespace {

using jinja::Value;
using jinja::Values;

constexpr int kMostReferences = 20;

const Value* find(const Value& value, const std::string& name) {
  return value.is_dict() ? value.dict().find(std::string_view(name)) : nullptr;
}

// The schema that references lead to.
Value resolved(Value schema, const Value& root) {
  for (int i = 0; i < kMostReferences && schema.is_dict(); ++i) {
    const Value* reference = find(schema, "$ref");
    if (reference == nullptr || !reference->is_string() ||
        reference->text().compare(0, 2, "#/") != 0) {
      return schema;
    }
    Value found = root;
    const std::string path = reference->text().substr(2) + "/";
    for (size_t at = 0; at < path.size();) {
      const size_t slash = path.find('/', at);
      const Value* inner = find(found, path.substr(at, slash - at));
      found = inner == nullptr ? jinja::make_dict({}) : *inner;
      at = slash + 1;
    }
    schema = found;
  }
  return schema.is_dict() ? schema : jinja::make_dict({});
}

// Types that a value may have; a schema that says nothing may be met by a text.
std::set<std::string> kinds_of(const Value& schema) {
  std::set<std::string> made;
  const Value* type = find(schema, "type");
  if (type != nullptr && type->is_string()) return {type->text()};
  if (type != nullptr && type->is(jinja::Kind::kList)) {
    for (const Value& kind : type->items()) {
      if (kind.is_string()) made.insert(kind.text());
    }
    return made;
  }
  const Value* branches = find(schema, "anyOf");
  if (branches != nullptr && branches->is(jinja::Kind::kList) && !branches->items().empty()) {
    for (const Value& branch : branches->items()) {
      if (branch.is_dict()) made.merge(kinds_of(branch));
    }
    return made;
  }
  return {find(schema, "properties") != nullptr ? "object" : "string"};
}

}  // namespace

std::pair<bool, std::string> markup_element(Rules& rules, const Value& given, const Value& root,
                                            const std::string& end) {
  const Value schema = resolved(given, root);
  Values values;
  if (const Value* one = find(schema, "const")) values = {*one};
  if (const Value* some = find(schema, "enum"); some && some->is(jinja::Kind::kList)) {
    values = some->items();
  }
  const auto is_text = [](const Value& value) { return value.is_string(); };
  if (!values.empty() && std::all_of(values.begin(), values.end(), is_text)) {
    std::vector<std::string> texts;
    for (const Value& value : values) texts.push_back(rules.text(value.text()));
    return {true, rules.either(texts) + " " + rules.text(end)};
  }
  const std::set<std::string> kinds = kinds_of(schema);
  if (kinds.count("string") == 0) return {false, rules.json(given, root) + " " + rules.text(end)};
  return {kinds.size() == 1, rules.up_to(end)};
}

}  // namespace wherry::app
