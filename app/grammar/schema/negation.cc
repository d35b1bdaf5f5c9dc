// Computes the complement of a schema as a list of alternatives.
#include <algorithm>
#include <cmath>

#include "app/grammar/schema/shapes.h"

namespace wherry::app {

namespace {

using json::Kind;
using json::Value;
using json::Values;

struct Opposite {
  std::string_view name, opposite;
  int more;  // number to add to the keyword's value
  unsigned types;
};
constexpr Opposite kOpposites[] = {{"minimum", "exclusiveMaximum", 0, kNumber},
                                   {"maximum", "exclusiveMinimum", 0, kNumber},
                                   {"exclusiveMinimum", "maximum", 0, kNumber},
                                   {"exclusiveMaximum", "minimum", 0, kNumber},
                                   {"minLength", "maxLength", -1, kText},
                                   {"maxLength", "minLength", 1, kText},
                                   {"minItems", "maxItems", -1, kList},
                                   {"maxItems", "minItems", 1, kList},
                                   {"minProperties", "maxProperties", -1, kObject},
                                   {"maxProperties", "minProperties", 1, kObject}};

}  // namespace

const Shapes::Choice& Shapes::negated(const Value& schema) {
  static const Choice kNothing, kAll = {{}};
  if (schema.is(Kind::kBool)) return schema.integer() != 0 ? kNothing : kAll;
  const json::Object* const key = schema.object().get();
  const auto known = negated_.find(key);
  if (known != negated_.end()) return known->second;
  if (!schema.is_dict())
    throw NotEnforced(place(&schema, ""), "a schema is an object or a boolean");
  const Expansion expansion(open_, key);
  if (expansion.circular())
    throw NotEnforced(place(&schema, ""), "what refers to itself cannot be turned round");
  Choice choice;
  for (const auto& [name, value] : schema.dict().items) {
    steps_.take(4);
    negate(name.text(), value, schema, choice);
  }
  return negated_.emplace(key, std::move(choice)).first->second;
}

void Shapes::negate(const std::string& name, const Value& value, const Value& schema,
                    Choice& into) {
  const bool read = std::any_of(std::begin(kKeywords), std::end(kKeywords),
                                [&](const TypeName& one) { return one.name == name; });
  const bool refused =
      std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused);
  if (!read && !refused) return;
  if (name == "type") {
    Shape shape;
    std::vector<Choice> none;
    keyword(name, value, schema, shape, none);
    const unsigned others = kAnyType & ~shape.types;
    if (others != 0) into.push_back({{Literal::kFits, nullptr, others}});
  } else if (name == "const" || name == "enum") {
    created_.push_back(name == "const" ? json::make_list({value}) : value);
    if (!created_.back().is(Kind::kList))
      throw NotEnforced(place(&schema, name), "it is no list of values");
    into.push_back({{Literal::kNoneOf, &created_.back()}});
  } else if (name == "required" && value.is(Kind::kList)) {
    for (const Value& one : value.items()) {
      if (!one.is_string()) continue;
      into.push_back(
          {{Literal::kFits, create({{"properties", json::make_dict({{one, false}})}}), kObject}});
    }
  } else if (name == "properties" && value.is_dict()) {
    for (const auto& [key, one] : value.dict().items) {
      const Value* with =
          create({{"properties", json::make_dict({{key, json::make_dict({{"not", one}})}})},
                  {"required", json::make_list({key})}});
      into.push_back({{Literal::kFits, with, kObject}});
    }
  } else if (name == "not") {
    into.push_back({{Literal::kFits, &value}});
  } else if (name == "$ref") {
    into.push_back({{Literal::kNot, &target(schema)}});
  } else if (name == "allOf" && value.is(Kind::kList)) {
    for (const Value& one : value.items()) into.push_back({{Literal::kNot, &one}});
  } else if (name == "anyOf" && value.is(Kind::kList)) {
    Goal none;
    for (const Value& one : value.items()) none.push_back({Literal::kNot, &one});
    into.push_back(std::move(none));
  } else if (name == "items" && value.is(Kind::kBool) && value.integer() == 0 &&
             schema.dict().find("prefixItems") == nullptr) {
    into.push_back({{Literal::kFits, create({{"minItems", 1}}), kList}});
  } else if (name == "format" && value.is_string() &&
             std::none_of(std::begin(kFormats), std::end(kFormats),
                          [&](const Format& one) { return one.name == value.text(); })) {
    return;
  } else if (std::any_of(std::begin(kOpposites), std::end(kOpposites),
                         [&](const Opposite& one) { return one.name == name; }) &&
             value.is_number() && !value.is(Kind::kBool)) {
    negate_bound(name, value, into);
  } else if (!value.is(Kind::kBool) || value.integer() == 0 ||
             (name != "items" && name != "additionalProperties")) {
    throw NotEnforced(place(&schema, name), "it cannot be turned round");
  }
}

void Shapes::negate_bound(const std::string& name, const Value& value, Choice& into) {
  for (const Opposite& one : kOpposites) {
    if (one.name != name) continue;
    if (one.more == 0) {
      into.push_back({{Literal::kFits, create({{std::string(one.opposite), value}}), one.types}});
    } else if (value.number() != std::floor(value.number()) || value.number() > 1e9) {
      throw NotEnforced("", name + " is no count");
    } else if (value.number() + one.more >= 0) {
      const auto count = static_cast<int64_t>(value.number()) + one.more;
      into.push_back({{Literal::kFits, create({{std::string(one.opposite), count}}), one.types}});
    }
  }
}

}  // namespace wherry::app
