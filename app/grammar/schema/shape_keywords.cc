// Applies each keyword of a schema to a shape.
#include <algorithm>
#include <cmath>

#include "app/grammar/schema/expression.h"
#include "app/grammar/schema/shapes.h"

namespace wherry::app {

namespace {

using json::Dict;
using json::Kind;
using json::Value;
using json::Values;

unsigned types_of_keyword(std::string_view name) {
  for (const TypeName& one : kKeywords) {
    if (one.name == name) return one.types;
  }
  return 0;
}

unsigned named_types(const Value& value) {
  if (value.is_string()) {
    for (const TypeName& one : kTypeNames) {
      if (one.name == value.text()) return one.types;
    }
  }
  unsigned result = 0;
  if (value.is(Kind::kList)) {
    for (const Value& one : value.items()) {
      const unsigned type = one.is_string() ? named_types(one) : 0;
      if (type == 0) return 0;
      result |= type;
    }
  }
  return result;
}

int64_t count_of(const Value& value) {
  const bool is_integer = value.is(Kind::kInt) ||
                          (value.is(Kind::kFloat) && value.number() == std::floor(value.number()));
  if (!is_integer || value.number() < 0 || value.number() > 1e9) return -1;
  return static_cast<int64_t>(value.number());
}

}  // namespace

bool Shapes::keyword(const std::string& name, const Value& value, const Value& schema, Shape& shape,
                     std::vector<Choice>& open) {
  const auto bad = [&](const char* why) { throw NotEnforced(place(&schema, name), why); };
  const Dict& all = schema.dict();
  if (std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused)) bad("");
  if (name == "$id" && &schema != &root_ && value.is_string()) bad("it moves references");
  const unsigned types = types_of_keyword(name);
  shape.mentioned |= types;
  if (name == "$ref") {
    open.push_back({{{Literal::kFits, &target(schema)}}});
  } else if (name == "type") {
    const unsigned named = named_types(value);
    if (named == 0) bad("it names no type");
    shape.types &= named;
  } else if (name == "const" || name == "enum") {
    if (name == "enum" && (!value.is(Kind::kList) || value.items().empty()))
      bad("it is no list of values");
    const Values given = name == "const" ? Values{value} : value.items();
    if (!shape.constants) {
      shape.constants = given;
    } else {
      steps_.take(given.size() * shape.constants->size());
      auto& kept = *shape.constants;
      kept.erase(std::remove_if(kept.begin(), kept.end(),
                                [&](const Value& one) {
                                  return std::none_of(
                                      given.begin(), given.end(),
                                      [&](const Value& other) { return same(one, other); });
                                }),
                 kept.end());
    }
    steps_.take(given.size());
  } else if (name == "allOf" || name == "anyOf" || name == "oneOf") {
    if (!value.is(Kind::kList) || value.items().empty()) bad("it is no list of schemas");
    Choice any;
    for (const Value& one : value.items()) {
      if (name == "allOf") open.push_back({{{Literal::kFits, &one}}});
      any.push_back({{Literal::kFits, &one}});
    }
    if (name == "anyOf") open.push_back(std::move(any));
    if (name == "oneOf") open.push_back(one_of(value, place(&schema, name)));
  } else if (name == "not") {
    open.push_back({{{Literal::kNot, &value}}});
  } else if (name == "if") {
    const Value *then = all.find("then"), *other = all.find("else");
    if (then != nullptr || other != nullptr) {
      open.push_back({{{Literal::kFits, &value}, {Literal::kFits, then}},
                      {{Literal::kNot, &value}, {Literal::kFits, other}}});
    }
  } else if (name == "dependentRequired" || name == "dependentSchemas" || name == "dependencies") {
    if (!value.is_dict()) bad("it is no object");
    dependent(value, place(&schema, name), open);
  } else if (types == kNumber) {
    if (!of_numbers(name, value, schema, shape))
      bad("it is no number that can be compared exactly");
  } else if (types == kText) {
    shape.texts_at = place(&schema, name);
    try {
      of_texts(name, value, shape);
    } catch (const NotEnforced& problem) {
      if (!problem.place().empty()) throw;
      bad(problem.what());
    }
  } else if (types == kList) {
    of_lists(name, value, schema, shape);
  } else if (types == kObject) {
    of_objects(name, value, schema, shape);
  }
  return true;
}

bool Shapes::of_numbers(const std::string& name, const Value& value, const Value& given,
                        Shape& shape) {
  const Dict& schema = given.dict();
  using Is = Numbers::Is;
  // In draft 4, exclusiveMinimum and exclusiveMaximum are booleans.
  if (value.is(Kind::kBool)) return name.compare(0, 9, "exclusive") == 0;
  const auto number = decimal_of(value);
  if (!number) return false;
  shape.numbers_at = place(&given, name);
  if (name == "multipleOf") {
    if (compare(*number, {}) <= 0) return false;
    shape.numbers.divisors.push_back(*number);
    return true;
  }
  const Value* exclusive = schema.find(name == "minimum" ? "exclusiveMinimum" : "exclusiveMaximum");
  const bool open = exclusive != nullptr && exclusive->is(Kind::kBool) && exclusive->integer() != 0;
  const Is is = name == "minimum"            ? open ? Is::kAbove : Is::kLeast
                : name == "maximum"          ? open ? Is::kBelow : Is::kMost
                : name == "exclusiveMinimum" ? Is::kAbove
                                             : Is::kBelow;
  shape.numbers.limits.push_back({is, *number});
  return true;
}

Texts::Id Shapes::pattern(const std::string& text) {
  const auto known = patterns_.find(text);
  if (known != patterns_.end()) return known->second;
  return patterns_.emplace(text, expression(texts_, text)).first->second;
}

void Shapes::of_texts(const std::string& name, const Value& value, Shape& shape) {
  if (name == "pattern") {
    if (!value.is_string()) throw NotEnforced("", "it is no text");
    shape.texts.push_back(pattern(value.text()));
  } else if (name == "format") {
    if (!value.is_string()) throw NotEnforced("", "it is no text");
    for (const Format& one : kFormats) {
      if (one.name != value.text()) continue;
      if (one.pattern == nullptr) throw NotEnforced("", "");
      const bool same = one.name == "date" || one.name == "time" || one.name == "date-time";
      if (!formats_ && !same) continue;
      shape.texts.push_back(pattern(one.pattern));
    }
  } else {
    const int64_t count = count_of(value);
    if (count < 0 || count > 1'000'000) throw NotEnforced("", "it is no count up to 1000000");
    const auto number = static_cast<int32_t>(count);
    shape.texts.push_back(name == "minLength" ? texts_.of_length(number, Texts::kUnbounded)
                                              : texts_.of_length(0, number));
  }
}

void Shapes::of_lists(const std::string& name, const Value& value, const Value& schema,
                      Shape& shape) {
  const Dict& all = schema.dict();
  const auto bad = [&](const char* why) { throw NotEnforced(place(&schema, name), why); };
  if (name == "minItems" || name == "maxItems") {
    const int64_t count = count_of(value);
    if (count < 0) bad("it is no count");
    if (name == "minItems") {
      shape.least_items = std::max(shape.least_items, count);
    } else {
      shape.most_items = shape.most_items < 0 ? count : std::min(shape.most_items, count);
    }
  } else if (name == "uniqueItems") {
    if (!value.is(Kind::kBool)) bad("it is no boolean");
    if (value.integer() != 0) shape.unique = &schema;
  } else if (name == "prefixItems") {
    if (!value.is(Kind::kList)) bad("it is no list of schemas");
    shape.lists.push_back({&value.items(), all.find("items")});
  } else if (name == "items" && value.is(Kind::kList)) {
    shape.lists.push_back({&value.items(), all.find("additionalItems")});
  } else if (name == "items" && all.find("prefixItems") == nullptr) {
    shape.lists.push_back({nullptr, &value});
  }
}

void Shapes::of_objects(const std::string& name, const Value& value, const Value& given,
                        Shape& shape) {
  const Dict& schema = given.dict();
  const auto where = [&] { return NotEnforced(place(&given, name), "it has another type"); };
  if (name == "required") {
    if (!value.is(Kind::kList)) throw where();
    for (const Value& one : value.items()) {
      if (!one.is_string()) throw where();
      if (std::find(shape.required.begin(), shape.required.end(), one.text()) ==
          shape.required.end()) {
        shape.required.push_back(one.text());
      }
    }
  } else if (name == "minProperties" || name == "maxProperties") {
    const int64_t count = count_of(value);
    if (count < 0) throw where();
    if (name == "minProperties") {
      shape.least_properties = std::max(shape.least_properties, count);
    } else {
      shape.most_properties =
          shape.most_properties < 0 ? count : std::min(shape.most_properties, count);
    }
  } else if (name == "propertyNames") {
    shape.names.push_back({Literal::kFits, &value});
  } else {
    // The first of these three keywords that the schema has handles all of them together.
    Shape::ObjectPart part{};
    std::string first;
    for (const auto& item : schema.items) {
      const std::string& key = item.first.text();
      if (key != "properties" && key != "patternProperties" && key != "additionalProperties")
        continue;
      if (first.empty()) first = key;
      if (key == "additionalProperties") {
        part.others = &item.second;
      } else {
        if (!item.second.is_dict()) throw where();
        (key == "properties" ? part.properties : part.patterns) = &item.second.dict();
      }
    }
    if (name == first) shape.objects.push_back(part);
  }
}

void Shapes::dependent(const Value& value, const std::string& where, std::vector<Choice>& open) {
  for (const auto& [name, needs] : value.dict().items) {
    const Value* without = create({{"properties", json::make_dict({{name, false}})}});
    const bool names = needs.is(Kind::kList);
    const auto is_text = [](const Value& one) { return one.is_string(); };
    if (names ? !std::all_of(needs.items().begin(), needs.items().end(), is_text)
              : !needs.is_dict() && !needs.is(Kind::kBool)) {
      throw NotEnforced(where, "it takes names or a schema");
    }
    Values required = {name};
    if (names) required.insert(required.end(), needs.items().begin(), needs.items().end());
    Goal with = {{Literal::kFits, create({{"required", json::make_list(required)}}), kObject}};
    if (!names) with.push_back({Literal::kFits, &needs});
    open.push_back({{{Literal::kFits, without}}, with});
  }
}
}  // namespace wherry::app
