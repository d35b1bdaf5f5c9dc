// Grammars of the formats.
#include <algorithm>

#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"

namespace wherry::app {

namespace {

const Value* property_of(const Value& schema, const char* name) {
  return schema.is_dict() ? schema.dict().find(name) : nullptr;
}

bool is_required(const CallRule& call, const std::string& key) {
  const Value* names = property_of(call.schema, "required");
  if (names == nullptr || !names->is(json::Kind::kList)) return false;
  return std::any_of(names->items().begin(), names->items().end(),
                     [&](const Value& name) { return name.is_string() && name.text() == key; });
}

using Property = std::pair<std::string, Value>;

// Keywords that constrain several arguments together, which only the grammar of one object
// enforces.
constexpr const char* kOfSeveral[] = {"$ref",
                                      "allOf",
                                      "anyOf",
                                      "oneOf",
                                      "not",
                                      "if",
                                      "const",
                                      "enum",
                                      "dependencies",
                                      "dependentRequired",
                                      "dependentSchemas",
                                      "minProperties",
                                      "maxProperties",
                                      "patternProperties"};

// Returns what a format does not enforce of a schema whose arguments it writes one by one.
Texts unenforced_one_by_one(const Value& schema) {
  Texts keywords;
  for (const char* name : kOfSeveral) {
    if (property_of(schema, name) != nullptr) keywords.emplace_back(name);
  }
  const Value* required = property_of(schema, "required");
  const Value* properties = property_of(schema, "properties");
  if (required != nullptr && required->is(json::Kind::kList) &&
      std::any_of(required->items().begin(), required->items().end(), [&](const Value& name) {
        return name.is_string() &&
               (properties == nullptr || property_of(*properties, name.text().c_str()) == nullptr);
      })) {
    keywords.emplace_back("required");
  }
  for (std::string& name : keywords) {
    name += ": not enforced among arguments that this model writes one by one";
  }
  return keywords;
}

// Returns the arguments that a tool declares and allows, as (name, schema).
std::vector<Property> properties_of(const CallRule& call) {
  std::vector<Property> properties;
  const Value* match = property_of(call.schema, "properties");
  if (match == nullptr || !match->is_dict()) return properties;
  for (const auto& [key, schema] : match->dict().items) {
    const bool allowed = !schema.is(json::Kind::kBool) || json::truth(schema);
    if (allowed) properties.emplace_back(key.text(), schema);
  }
  return properties;
}

// Returns the grammar of an object's members in a fixed order, the required ones first. `one`
// returns the expression of the member with an index, name and schema.
template <typename One>
std::string members(const CallRule& call, std::vector<Property> properties, One one) {
  std::stable_partition(properties.begin(), properties.end(), [&](const Property& property) {
    return is_required(call, property.first);
  });
  std::string result, ends;
  for (size_t i = 0; i < properties.size(); ++i) {
    const bool must = is_required(call, properties[i].first);
    result += (must ? " " : " (") + one(i, properties[i].first, properties[i].second);
    if (!must) ends += ")?";
  }
  return result + ends;
}

// Returns the expression of further calls, each after `between`; "" unless there may be several.
std::string repeated(const std::string& between, const std::string& call, bool several) {
  return several ? " (" + between + " " + call + ")*" : "";
}

// Returns the expression of a call object: `head`, name, `middle`, arguments, "}".
std::string object(Rules& rules, const std::string& head, const std::string& middle,
                   const CallRule& call) {
  return rules.text(head + json_escaped(call.name) + middle) + " " + call.arguments + " \"}\"";
}

// Returns the expression of an output that is either text that does not begin with `first`, or
// `calls`, which begin with it.
std::string free_or(Rules& rules, const std::string& first, const std::string& calls) {
  return rules.either({rules.text_beginning("[^ \\t\\n\\r\\" + first + "]"), calls});
}

// Returns the alternatives of `one` for each of the calls.
template <typename One>
std::string one_of(Rules& rules, const CallRules& calls, One one) {
  std::vector<std::string> texts;
  texts.reserve(calls.size());
  for (const CallRule& call : calls) texts.push_back(one(call));
  return rules.either(texts);
}

// Returns the grammar of an object of any members: names that `equals` separates from JSON values.
std::string any_members(Rules& rules, const std::string& equals, const std::string& comma) {
  const Value anything = json::make_dict({});
  const std::string one = rules.characters("[A-Za-z_][A-Za-z0-9_]*") + " " + quoted(equals) + " " +
                          rules.json(anything, anything);
  return "(" + one + " (" + quoted(comma) + " " + one + ")*)?";
}

// Returns whether an argument's value is plain text, and the expression of the value and `end`.
std::pair<bool, std::string> element(Rules& rules, const Value& schema, const CallRule& call,
                                     const std::string& end) {
  if (!call.input.empty()) return {true, call.input + " " + rules.text(end)};
  return rules.element(schema, call.schema, end);
}

}  // namespace

std::string Tagged::written(Rules& rules, const CallRules& calls, bool several) const {
  const std::string call =
      one_of(rules, calls, [&](const CallRule& one) { return object(rules, head, middle, one); });
  const std::string last = rules.text(space + end);
  if (listed) {
    return rules.text(space) + " \"[\" " + call + repeated("\", \"", call, several) + " \"]\" " +
           last;
  }
  const std::string rest = rules.rule(rules.text(space) + " " + call + " " + last);
  return rest + repeated(rules.text("\n" + begin[0]), rest, several);
}

std::string Bare::written(Rules& rules, const CallRules& calls, bool several) const {
  const std::string call = one_of(rules, calls, [&](const CallRule& one) {
    return object(rules, "{\"name\": \"", middle, one);
  });
  return call + repeated("\"; \"", call, several);
}

std::string Bare::forced(Rules& rules, const CallRules& calls, bool several) const {
  return written(rules, calls, several);
}

std::string Bare::free(Rules& rules, const CallRules& calls, bool several) const {
  return free_or(rules, "{", written(rules, calls, several));
}

std::string Headed::written(Rules& rules, const CallRules& calls, bool several) const {
  const std::string number = !tag.empty() && id_is_header
                                 ? rules.text(tag) + " " + rules.characters("[0-9]{1,4}") + " "
                                 : "";
  const std::string call = one_of(rules, calls, [&](const CallRule& one) {
    return rules.text(before + one.name) + " " + number + rules.text(middle[0]) + " " +
           one.arguments + " " + rules.text(end.empty() ? "" : end[0]);
  });
  return rules.text(section.empty() ? "" : begin) + " " + call +
         repeated(rules.text(between + begin), call, several) + " " + rules.text(section_end);
}

std::string Mistral::written(Rules& rules, const CallRules& calls, bool several) const {
  return named ? headed.written(rules, calls, several) : list.written(rules, calls, several);
}

Texts Markup::unenforced(const Value& schema) const { return unenforced_one_by_one(schema); }
Texts Braces::unenforced(const Value& schema) const { return unenforced_one_by_one(schema); }
Texts Pythonic::unenforced(const Value& schema) const { return unenforced_one_by_one(schema); }

std::string Markup::elements(Rules& rules, const CallRule& call) const {
  std::string between;
  for (const std::string& text : keyed) between += (between.empty() ? "" : line) + text;
  if (call.open) {
    return "(" + rules.text(key) + " " + rules.characters("[^<>\"= \\t\\n\\r]+") + " " +
           rules.text(between) + " " + rules.up_to(ended) + " " + rules.text(line) + ")*";
  }
  std::string result;
  for (const auto& [name, schema] : properties_of(call)) {
    const auto [is_text, inner] = element(rules, schema, call, pad + ended);
    const std::string attribute =
        typed ? std::string("\" string=\"") + (is_text ? "true\"" : "false\"") : "";
    const std::string one =
        rules.text(key + name + attribute + between + pad) + " " + inner + " " + rules.text(line);
    result += is_required(call, name) ? " " + one : " (" + one + ")?";
  }
  return result;
}

std::string Markup::written(Rules& rules, const CallRules& calls, bool again) const {
  const std::string one = one_of(rules, calls, [&](const CallRule& rule) {
    return rules.text(call + rule.name + (call.empty() ? "" : named) + line) + " " +
           elements(rules, rule) + " " + rules.text(call_end);
  });
  const std::string gap = rules.text(call.empty() ? "" : line);
  const std::string last = gap + " " + rules.text(outer_end);
  if (several) return gap + " " + one + repeated(rules.text(line), one, again) + " " + last;
  const std::string rest = rules.rule(gap + " " + one + " " + last);
  return rest + repeated(rules.text(line + outer), rest, again);
}

std::string Braces::written(Rules& rules, const CallRules& calls, bool several) const {
  const std::string call = one_of(rules, calls, [&](const CallRule& one) {
    return rules.text("call:" + one.name + "{") + " " + written_members(rules, one) + " " +
           rules.text("}" + end);
  });
  return call + repeated(rules.text(begin), call, several);
}

// Returns the grammar of the arguments. They are sorted by name, as the template writes them, and
// then by whether they are required.
std::string Braces::written_members(Rules& rules, const CallRule& call) const {
  if (call.open) return any_members(rules, ":", ",");
  std::vector<Property> sorted = properties_of(call);
  std::sort(sorted.begin(), sorted.end(),
            [](const Property& a, const Property& b) { return a.first < b.first; });
  return members(call, std::move(sorted),
                 [&](size_t i, const std::string& key, const Value& schema) {
                   return rules.text((i == 0 ? "" : ",") + key + ":") + " " +
                          written_value(rules, schema, call);
                 });
}

// Returns the grammar of a value: a string between `quote`, or JSON for all other types.
std::string Braces::written_value(Rules& rules, const Value& schema, const CallRule& call) const {
  const Value* kind = property_of(schema, "type");
  const Value* values = property_of(schema, "enum");
  const bool texts = values != nullptr && values->is(json::Kind::kList) &&
                     !values->items().empty() &&
                     std::all_of(values->items().begin(), values->items().end(),
                                 [](const Value& value) { return value.is_string(); });
  if (texts || (kind != nullptr && kind->is_string() && kind->text() == "string")) {
    return rules.text(quote) + " " + element(rules, schema, call, quote).second;
  }
  return rules.json(schema, call.schema);
}

std::string Pythonic::written(Rules& rules, const CallRules& calls, bool several) const {
  const std::string call = one_of(rules, calls, [&](const CallRule& one) {
    return rules.text(one.name + "(") + " " + written_arguments(rules, one) + " \")\"";
  });
  const std::string all = call + repeated(brackets ? "\", \"" : "\"\\n\"", call, several);
  return (brackets ? "\"[\" " + all + " \"]\"" : all) + " " + rules.text(end);
}

std::string Pythonic::forced(Rules& rules, const CallRules& calls, bool several) const {
  return rules.text(begin.empty() ? "" : begin[0]) + " " + written(rules, calls, several);
}

// Without a mark, an initial bracket begins calls, so text must not begin with one.
std::string Pythonic::free(Rules& rules, const CallRules& calls, bool several) const {
  if (!begin.empty()) return Format::free(rules, calls, several);
  return free_or(rules, "[", written(rules, calls, several));
}

std::string Pythonic::written_arguments(Rules& rules, const CallRule& call) const {
  if (call.open) return any_members(rules, "=", ", ");
  // Most values are JSON, whose literals are valid in Python, too; booleans are in Python syntax.
  return members(
      call, properties_of(call), [&](size_t i, const std::string& key, const Value& schema) {
        const Value* kind = property_of(schema, "type");
        const bool truth = kind != nullptr && kind->is_string() && kind->text() == "boolean";
        return rules.text((i == 0 ? "" : ", ") + key + "=") + " " +
               (!call.input_in_json.empty() ? call.input_in_json
                : truth                     ? "(\"True\" | \"False\")"
                                            : rules.json(schema, call.schema));
      });
}

}  // namespace wherry::app
