#include "app/grammar/schema_audit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

#include "app/chat/request_error.h"
#include "app/template/json_text.h"

namespace wherry::app {

namespace {

using jinja::Value;
using jinja::Values;
using Items = std::vector<std::pair<Value, Value>>;

// Enforced, with values that are no schemas. Texts of a length or a pattern are not among them: the
// library's rules for a length allow control characters, which JSON does not.
constexpr std::string_view kPlain[] = {"type",    "required", "enum",     "const",   "$ref",
                                       "minimum", "maximum",  "minItems", "maxItems"};
// Enforced, with a schema, a list of schemas, or schemas by name.
constexpr std::string_view kNested[] = {"items", "additionalProperties", "anyOf", "prefixItems"};
constexpr std::string_view kNamed[] = {"properties", "$defs", "definitions"};
// Without effect on what is valid.
constexpr std::string_view kNotes[] = {"$schema",     "$id",      "$comment", "title",
                                       "description", "default",  "examples", "deprecated",
                                       "readOnly",    "writeOnly"};
// The first of these that is present decides alone.
constexpr std::string_view kAlone[] = {"$ref", "const", "enum", "anyOf"};
// What tells the library of a type, where none is named.
constexpr std::string_view kTelling[] = {"properties", "additionalProperties", "items",
                                         "prefixItems"};
// What does not, and the type that makes it count: what is valid then is valid without it.
constexpr std::pair<std::string_view, const char*> kUntold[] = {{"required", "object"},
                                                                {"minItems", "array"},
                                                                {"maxItems", "array"},
                                                                {"minimum", "number"},
                                                                {"maximum", "number"}};

template <typename Names>
bool among(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_of(const Value& value, const std::string& type) {
  switch (value.kind()) {
    case jinja::Kind::kNone:
      return type == "null";
    case jinja::Kind::kBool:
      return type == "boolean";
    case jinja::Kind::kInt:
      return type == "integer" || type == "number";
    case jinja::Kind::kFloat:
      return type == "number" ||
             (type == "integer" && value.number() == std::floor(value.number()));
    case jinja::Kind::kString:
      return type == "string";
    case jinja::Kind::kDict:
      return type == "object";
    default:
      return type == "array";
  }
}

bool fits(const Value& value, const Value& types) {
  if (types.is_string()) return is_of(value, types.text());
  return types.is(jinja::Kind::kList) &&
         std::any_of(types.items().begin(), types.items().end(), [&](const Value& type) {
           return type.is_string() && is_of(value, type.text());
         });
}

class Audit {
 public:
  // Keywords that are not enforced, and references to what is no schema or not found.
  std::vector<std::string> problems() {
    for (const auto& [place, pointer] : references_) {
      if (schemas_.count(pointer) == 0) add(place);
    }
    return found_;
  }

  // pointer: to the schema; "" where the library would not find it.
  Value walk(const Value& schema, const std::string& where, const std::string& pointer) {
    if (!pointer.empty()) schemas_.insert(pointer);
    if (schema.is(jinja::Kind::kList)) {
      Values made;
      for (size_t i = 0; i < schema.items().size(); ++i) {
        made.push_back(walk(schema.items()[i], where + "[" + std::to_string(i) + "]", ""));
      }
      return jinja::make_list(std::move(made));
    }
    if (!schema.is_dict()) return schema;
    const jinja::Dict& given = schema.dict();
    const auto has = [&](std::string_view name) { return given.find(name) != nullptr; };
    const auto* const alone = std::find_if(std::begin(kAlone), std::end(kAlone), has);
    const bool values = alone != std::end(kAlone) && (*alone == "const" || *alone == "enum");
    Items items;
    for (const auto& [key, value] : given.items) {
      const std::string& name = key.text();
      const std::string place = where.empty() ? name : where + "." + name;
      const bool type_of_values = values && name == "type";
      if (alone != std::end(kAlone) && name != *alone && constrains(name) && !type_of_values) {
        add(place);
      } else if (among(kNested, name)) {
        items.emplace_back(key, walk(value, place, step(pointer, name)));
      } else if (among(kNamed, name) && value.is_dict()) {
        items.emplace_back(key, each(value, place, step(pointer, name)));
      } else if (!among(kPlain, name) && !among(kNotes, name)) {
        add(place);
      } else if (name == "type" && value.is(jinja::Kind::kList) && value.items().empty()) {
        add(place);  // the library takes it for any
      } else if (!type_of_values && !among(kNotes, name)) {
        items.emplace_back(key, is_count(name) ? whole(value) : value);
        if (name == "$ref" && value.is_string()) references_.emplace_back(place, value.text());
      }
    }
    if (values && has("type")) keep_of_type(items, *given.find("type"));
    if (alone == std::end(kAlone)) {
      if (!has("type")) add_type(items, has);
      name_required(items, given);
      close(items, where);
    }
    // The library takes schemas for equal that differ in what is named like a note, such as a
    // property "title": by this they differ for it.
    const std::string text = jinja::to_json(jinja::make_dict(items));
    items.emplace_back("x-hash", std::to_string(std::hash<std::string>()(text)));
    return jinja::make_dict(std::move(items));
  }

 private:
  // Where the library comes by a name; it reads no escapes.
  static std::string step(const std::string& pointer, const std::string& name) {
    const bool plain = !name.empty() && name.find_first_of("~/%") == name.npos;
    return plain && !pointer.empty() ? pointer + "/" + name : "";
  }

  static bool is_count(std::string_view name) { return name == "minItems" || name == "maxItems"; }

  // The library takes 2.0 for a fraction.
  static Value whole(const Value& value) {
    const bool is = value.is(jinja::Kind::kFloat) && std::fabs(value.number()) < 1e15 &&
                    value.number() == std::floor(value.number());
    return is ? Value(static_cast<int64_t>(value.number())) : value;
  }

  // The library requires only what is among the properties.
  static void name_required(Items& items, const jinja::Dict& given) {
    const Value* names = given.find("required");
    if (names == nullptr || !names->is(jinja::Kind::kList)) return;
    Value others = jinja::make_dict({});
    auto properties = items.end();
    for (auto item = items.begin(); item != items.end(); ++item) {
      if (item->first.text() == "additionalProperties") others = item->second;
      if (item->first.text() == "properties") properties = item;
    }
    Items all;
    if (properties != items.end()) {
      if (!properties->second.is_dict()) return;
      all = properties->second.dict().items;
    }
    const size_t before = all.size();
    for (const Value& name : names->items()) {
      const bool known =
          !name.is_string() || std::any_of(all.begin(), all.end(), [&](const auto& property) {
            return property.first.text() == name.text();
          });
      if (!known) all.emplace_back(name, others);
    }
    if (all.size() == before) return;
    if (properties != items.end()) items.erase(properties);
    items.emplace_back("properties", jinja::make_dict(std::move(all)));
  }

  // The library keeps names out of those that may be added byte by byte, unescaped. Where that is
  // not how they are written nothing is added; what has a schema of its own cannot be.
  void close(Items& items, const std::string& where) {
    const Value* properties = nullptr;
    auto others = items.end();
    for (auto item = items.begin(); item != items.end(); ++item) {
      if (item->first.text() == "properties") properties = &item->second;
      if (item->first.text() == "additionalProperties") others = item;
    }
    if (properties == nullptr || !properties->is_dict()) return;
    const auto& named = properties->dict().items;
    if (std::all_of(named.begin(), named.end(), [](const auto& one) { return plain(one.first); })) {
      return;
    }
    const bool is_schema = others != items.end() && others->second.is_dict();
    const bool says = is_schema && constrains_any(others->second.dict());
    if (says) return add(where.empty() ? "additionalProperties" : where + ".additionalProperties");
    if (others != items.end()) items.erase(others);
    items.emplace_back("additionalProperties", false);
  }

  static bool plain(const Value& name) {
    const std::string& text = name.text();
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; });
  }

  static bool constrains_any(const jinja::Dict& schema) {
    return std::any_of(schema.items.begin(), schema.items.end(),
                       [](const auto& item) { return item.first.text() != "x-hash"; });
  }

  static bool constrains(std::string_view name) {
    return among(kPlain, name) || among(kNested, name) || name == "properties";
  }

  void add(const std::string& place) {
    if (!among(found_, place)) found_.push_back(place);
  }

  Value each(const Value& schemas, const std::string& place, const std::string& pointer) {
    Items made;
    for (const auto& [name, one] : schemas.dict().items) {
      made.emplace_back(name, walk(one, place + "." + name.text(), step(pointer, name.text())));
    }
    return jinja::make_dict(std::move(made));
  }

  // Keeps the constants that have the type named in the same schema.
  static void keep_of_type(Items& items, const Value& type) {
    for (auto& [key, value] : items) {
      const bool one = key.text() == "const";
      if (!one && (key.text() != "enum" || !value.is(jinja::Kind::kList))) continue;
      Values kept;
      for (const Value& constant : one ? Values{value} : value.items()) {
        if (fits(constant, type)) kept.push_back(constant);
      }
      key = "enum";
      value = jinja::make_list(std::move(kept));
    }
  }

  template <typename Has>
  static void add_type(Items& items, const Has& has) {
    if (std::any_of(std::begin(kTelling), std::end(kTelling), has)) return;
    for (const auto& [name, type] : kUntold) {
      if (!has(name)) continue;
      items.emplace_back("type", type);
      return;
    }
  }

  std::vector<std::string> found_;
  std::set<std::string> schemas_;                                // pointers to all
  std::vector<std::pair<std::string, std::string>> references_;  // places, and where they point
};

}  // namespace

std::vector<std::string> unenforced_in(const Value& schema) {
  Audit audit;
  audit.walk(schema, "", "#");
  return audit.problems();
}

void check_schema(const Value& schema, const std::string& param) {
  std::string names;
  for (const std::string& name : unenforced_in(schema)) {
    names += (names.empty() ? "" : ", ") + name;
  }
  if (names.empty()) return;
  throw RequestError("The schema has keywords that are not enforced here: " + names, param,
                     "unsupported_schema");
}

std::string prepared(const Value& schema) { return jinja::to_json(Audit().walk(schema, "", "#")); }

}  // namespace wherry::app
