#include "app/host/lark_rules.h"

#include <algorithm>

#include "app/value/json_text.h"

namespace wherry::app {

using json::Value;

namespace {

constexpr std::string_view kPart = "wherry_part";
constexpr size_t kMaxBytes = size_t{4} << 20;  // of all parts; each argument repeats definitions
constexpr size_t kShort = 64;                  // bytes of a part that is always accepted
constexpr size_t kMaxReferences = 20;          // of a schema that refers to a reference
// Keywords that only JSON grammars enforce of an element, and of its text.
constexpr const char* kOfElement[] = {"not", "if", "allOf"};
constexpr const char* kOfText[] = {"pattern", "minLength", "maxLength", "format"};
constexpr const char* kAlternatives[] = {"anyOf", "oneOf"};

const Value* member(const Value& object, std::string_view name) {
  return object.is_dict() ? object.dict().find(name) : nullptr;
}

// Returns the items of a list; none of another value.
json::Values items_of(const Value* list) {
  return list != nullptr && list->is(json::Kind::kList) ? list->items() : json::Values();
}

json::Values alternatives(const Value& schema) {
  json::Values all;
  for (const char* name : kAlternatives) {
    for (const Value& one : items_of(member(schema, name))) {
      if (one.is_dict()) all.push_back(one);
    }
  }
  return all;
}

// Adds the keywords by which a schema, or an alternative of it, constrains texts.
// NOLINTNEXTLINE(misc-no-recursion)
void add_of_text(const Value& schema, std::vector<std::string>& keywords) {
  for (const char* name : kOfText) {
    if (member(schema, name) != nullptr) keywords.emplace_back(name);
  }
  for (const Value& one : alternatives(schema)) add_of_text(one, keywords);
}

// Returns a schema with its references within `root` resolved.
Value resolved(Value schema, const Value& root) {
  for (size_t i = 0; i < kMaxReferences; ++i) {
    const Value* reference = member(schema, "$ref");
    if (reference == nullptr || !reference->is_string() || reference->text().rfind("#/", 0) != 0) {
      break;
    }
    const std::string path = reference->text().substr(1);
    schema = root;
    for (size_t at = 0; at != path.npos;) {
      const size_t next = path.find('/', at + 1);
      const Value* step = member(schema, path.substr(at + 1, next - at - 1));
      schema = step == nullptr ? json::make_dict({}) : *step;
      at = next;
    }
  }
  return schema.is_dict() ? schema : json::make_dict({});
}

// Returns the JSON types that a value may have; a schema without a type allows a text.
// NOLINTNEXTLINE(misc-no-recursion)
std::set<std::string> types_of(const Value& schema) {
  std::set<std::string> types;
  const Value* type = member(schema, "type");
  if (type != nullptr && type->is_string()) return {type->text()};
  if (type != nullptr && type->is(json::Kind::kList)) {
    for (const Value& one : type->items()) {
      if (one.is_string()) types.insert(one.text());
    }
    return types;
  }
  bool branches = false;
  for (const char* name : kAlternatives) branches |= !items_of(member(schema, name)).empty();
  if (!branches) return {member(schema, "properties") != nullptr ? "object" : "string"};
  for (const Value& one : alternatives(schema)) types.merge(types_of(one));
  return types;
}

// Returns the only values that a schema allows; none if it allows others.
json::Values values_of(const Value& schema) {
  if (const Value* values = member(schema, "enum")) return items_of(values);
  const Value* value = member(schema, "const");
  return value == nullptr ? json::Values() : json::Values{*value};
}

}  // namespace

std::string LarkParts::rule(const std::string& kind, const std::string& text) {
  const auto known = indices_.find({kind, text});
  if (known != indices_.end()) return std::string(kPart) + std::to_string(known->second);
  bytes_ += text.size();
  if (bytes_ > kMaxBytes && text.size() > kShort) {
    throw Unenforced{{"$defs: the schemas of arguments have more than " +
                      std::to_string(kMaxBytes) + " characters with their definitions"}};
  }
  indices_.emplace(std::pair(kind, text), parts_.size());
  parts_.push_back({kind, text});
  return std::string(kPart) + std::to_string(parts_.size() - 1);
}

std::set<size_t> LarkParts::used_in(std::string_view grammar) const {
  std::set<size_t> used;
  for (size_t at = grammar.find(kPart); at != grammar.npos; at = grammar.find(kPart, at)) {
    size_t index = 0, digits = 0;
    at += kPart.size();
    for (; at < grammar.size() && grammar[at] >= '0' && grammar[at] <= '9'; ++at, ++digits) {
      index = std::min(index * 10 + static_cast<size_t>(grammar[at] - '0'), parts_.size());
    }
    if (digits > 0 && index < parts_.size()) used.insert(index);
  }
  return used;
}

std::string LarkRules::written(const std::vector<Piece>& pieces) const {
  std::string expression;
  for (const auto& [id, text] : pieces) {
    if (!expression.empty()) expression += ' ';
    expression += id >= 0 ? "<[" + std::to_string(id) + "]>" : quoted(text);
  }
  return expression;
}

std::string LarkRules::any_text() {
  if (!has_any_text_) rules_ += "WHERRY_TEXT: /(.|\\n)*/\n";
  has_any_text_ = true;
  return "WHERRY_TEXT";
}

// One lexeme, because llguidance's lexer prefers a longer one that begins with the first character,
// such as a mark of reasoning, and does not come back from it.
std::string LarkRules::text_beginning(const std::string& characters) {
  return "/" + characters + "(.|\\n)*/";
}

std::string LarkRules::up_to(std::string_view literal) {
  const std::vector<Piece> all = pieces(literal);
  const std::string text = any_text();
  if (all.empty()) return text;
  if (all[0].first >= 0) return text + " " + written(all);
  return rule(text + " " + quoted(literal), true);
}

std::string LarkRules::amid_text(const std::vector<std::pair<std::string, std::string>>& rests,
                                 bool again) {
  std::vector<std::string> each;
  each.reserve(rests.size());
  for (const auto& [literal, rest] : rests) each.push_back(up_to(literal) + " " + rest);
  return "(" + either(each) + (again ? ")* " : ")? ") + any_text();
}

std::string LarkRules::json(const Value& schema, const Value& root) {
  if (!schema.is_dict()) return parts_.rule("schema", json::to_json(schema));
  std::vector<std::pair<Value, Value>> items = schema.dict().items;
  for (const char* name : {"$defs", "definitions"}) {
    if (const Value* definitions = member(root, name)) items.emplace_back(name, *definitions);
  }
  return parts_.rule("schema", json::to_json(json::make_dict(std::move(items))));
}

std::pair<bool, std::string> LarkRules::element(const Value& given, const Value& root,
                                                const std::string& end) {
  const Value schema = resolved(given, root);
  std::vector<std::string> refused;
  for (const char* name : kOfElement) {
    if (member(schema, name) != nullptr) refused.emplace_back(name);
  }
  const json::Values values = values_of(schema);
  const bool texts = !values.empty() && std::all_of(values.begin(), values.end(),
                                                    [](const Value& v) { return v.is_string(); });
  if (texts && refused.empty()) {
    std::vector<std::string> each;
    for (const Value& value : values) each.push_back(text(value.text()));
    return {true, either(each) + " " + text(end)};
  }
  const std::set<std::string> types = types_of(schema);
  if (types.count("string") == 0) return {false, json(schema, root) + " " + text(end)};
  add_of_text(schema, refused);
  if (refused.empty()) return {types.size() == 1, up_to(end)};
  for (std::string& keyword : refused) {
    keyword += ": not enforced in a text that this model writes outside of JSON";
  }
  throw Unenforced{std::move(refused)};
}

std::string LarkRules::rule(const std::string& expression, bool lazy) {
  const std::string name = "wherry_" + std::to_string(count_++);
  rules_ += name + (lazy ? "[lazy]" : "") + ": " + expression + "\n";
  return name;
}

}  // namespace wherry::app
