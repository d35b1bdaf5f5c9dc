// Grammars of the formats.
#include <algorithm>

#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"
#include "app/tools/markup_element.h"

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

// Returns the arguments that a tool declares, as (name, schema).
std::vector<Property> properties_of(const CallRule& call) {
  std::vector<Property> made;
  const Value* found = property_of(call.schema, "properties");
  if (found == nullptr || !found->is_dict()) return made;
  for (const auto& [key, schema] : found->dict().items) made.emplace_back(key.text(), schema);
  return made;
}

// Returns the grammar of an object's members in a fixed order, the required ones first. `one`
// returns the expression of the member with an index, name and schema.
template <typename One>
std::string members(const CallRule& call, std::vector<Property> properties, One one) {
  std::stable_partition(properties.begin(), properties.end(), [&](const Property& property) {
    return is_required(call, property.first);
  });
  std::string made, ends;
  for (size_t i = 0; i < properties.size(); ++i) {
    const bool must = is_required(call, properties[i].first);
    made += (must ? " " : " (") + one(i, properties[i].first, properties[i].second);
    if (!must) ends += ")?";
  }
  return made + ends;
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
  return rules.either({"[^ \\t\\n\\r\\" + first + "] " + kAnyText, calls});
}

// Returns the alternatives of `one` for each of the calls.
template <typename One>
std::string one_of(Rules& rules, const CallRules& calls, One one) {
  std::vector<std::string> made;
  made.reserve(calls.size());
  for (const CallRule& call : calls) made.push_back(one(call));
  return rules.either(made);
}

// Returns the JSON Schema that allows any value.
Value anything() { return json::make_dict({}); }

// Grammar expression of an argument's name.
constexpr char kWord[] = "[A-Za-z_] [A-Za-z0-9_]*";

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
  const std::string number = !tag.empty() && whole_id ? rules.text(tag) + " [0-9]{1,4} " : "";
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

std::string Markup::elements(Rules& rules, const CallRule& call) const {
  std::string between;
  for (const std::string& text : keyed) between += (between.empty() ? "" : line) + text;
  if (call.open) {
    return "(" + rules.text(key) + " [^<>\"= \\t\\n\\r]+ " + rules.text(between) + " " +
           rules.up_to(ended) + " " + rules.text(line) + ")*";
  }
  std::string made;
  for (const auto& [name, schema] : properties_of(call)) {
    const auto [is_text, inner] = markup_element(rules, schema, call.schema, pad + ended);
    const std::string attribute =
        typed ? std::string("\" string=\"") + (is_text ? "true\"" : "false\"") : "";
    const std::string one =
        rules.text(key + name + attribute + between + pad) + " " + inner + " " + rules.text(line);
    made += is_required(call, name) ? " " + one : " (" + one + ")?";
  }
  return made;
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
  if (call.open) {
    const std::string one = std::string(kWord) + " \":\" " + rules.json(anything(), anything());
    return "(" + one + " (\",\" " + one + ")*)?";
  }
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
    return rules.text(quote) + " " + markup_element(rules, schema, call.schema, quote).second;
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
  if (call.open) {
    const std::string one = std::string(kWord) + " \"=\" " + rules.json(anything(), anything());
    return "(" + one + " (\", \" " + one + ")*)?";
  }
  // Most values are JSON, whose literals are valid in Python, too; booleans are in Python syntax.
  return members(
      call, properties_of(call), [&](size_t i, const std::string& key, const Value& schema) {
        const Value* kind = property_of(schema, "type");
        const bool truth = kind != nullptr && kind->is_string() && kind->text() == "boolean";
        return rules.text((i == 0 ? "" : ", ") + key + "=") + " " +
               (truth ? "(\"True\" | \"False\")" : rules.json(schema, call.schema));
      });
}

}  // namespace wherry::app
