#include "app/grammar/fields.h"

#include <algorithm>

#include "app/grammar/ebnf_rules.h"
#include "app/grammar/endless.h"
#include "app/grammar/schema_audit.h"
#include "app/grammar/structural_tag.h"
#include "app/request/request_error.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

// Upper bounds on characters, checked before parsing: compile time grows faster than the length.
constexpr size_t kLongestGrammar = 64 << 10, kLongestGbnf = 16 << 10, kLongestRegex = 8 << 10;
constexpr size_t kLongestChoices = 64 << 10, kLongestSchema = 256 << 10;
constexpr size_t kDeepest = 100;
constexpr size_t kShown = 80;  // upper bound on characters of an invalid value in its error message

constexpr const char* kFields[] = {"response_format", "structured_outputs", "guided_json",
                                   "guided_regex",    "guided_choice",      "guided_grammar",
                                   "grammar",         "json_schema"};

[[noreturn]] void shape(const std::string& param, const Value& value, const std::string& accepted) {
  std::string shown = json::repr(value);
  if (unicode::count_code_points(shown) > kShown) {
    shown = shown.substr(0, unicode::byte_of(shown, kShown)) + "...";
  }
  throw RequestError(param + " is " + shown + "; it takes " + accepted, param);
}

[[noreturn]] void invalid(const std::string& message, const std::string& param) {
  throw RequestError(message, param, "invalid_grammar");
}

const std::string& checked_text(const Value& value, const std::string& param, size_t most) {
  if (!value.is_string()) shape(param, value, "a text");
  if (value.chars() > most) {
    invalid(param + " has " + std::to_string(value.chars()) + " characters; accepted are " +
                std::to_string(most),
            param);
  }
  if (value.text().find('\0') != std::string::npos) {
    invalid(param + " holds U+0000 or half a surrogate pair", param);
  }
  return value.text();
}

// Limits the depth of nested groups, because the parsers are recursive.
void check_depth(const std::string& text, const std::string& param) {
  size_t depth = 0, deepest = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
  }
  if (deepest <= kDeepest) return;
  invalid(param + " has brackets " + std::to_string(deepest) + " deep; accepted are " +
              std::to_string(kDeepest),
          param);
}

// Removes the parts of a grammar whose brackets are not groups: strings, expressions, comments.
std::string groups_of(const std::string& text, bool gbnf) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '#' || (!gbnf && text.compare(at, 2, "//") == 0)) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    const char end = c == '"' ? '"' : gbnf && c == '[' ? ']' : !gbnf && c == '/' ? '/' : '\0';
    if (end == '\0') {
      result += c;
      continue;
    }
    for (++at; at < text.size() && text[at] != end; ++at) {
      if (text[at] == '\\') ++at;
    }
  }
  return result;
}

// Returns a JSON value as it is, or the JSON that a text contains.
Value loaded(const Value& value, const std::string& param) {
  if (!value.is_string()) return value;
  try {
    return json::from_json(checked_text(value, param, kLongestSchema));
  } catch (const json::Failure& failure) {
    invalid(param + " is not JSON: " + failure.what(), param);
  }
}

const char* kind_of(const Value& value) {
  if (value.is(json::Kind::kList)) return "an array";
  return value.is_string() ? "a string" : value.is_none() ? "null" : "a number";
}

class Making {
 public:
  explicit Making(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  Constraint one(const std::string& name, const Value& value) const {
    if (name == "response_format") return response_format(value);
    if (name == "structured_outputs") return structured_outputs(value);
    const std::string kind = name == "json_schema"                ? "json"
                             : name.compare(0, 7, "guided_") == 0 ? name.substr(7)
                                                                  : name;
    return of_kind(kind, value, name);
  }

 private:
  Constraint response_format(const Value& value) const {
    const std::string param = "response_format";
    if (!value.is_dict()) shape(param, value, "an object: {\"type\": \"json_object\"}");
    const Value* match = value.dict().find("type");
    const Value given = match == nullptr ? Value() : *match;
    const std::string kind = given.is_string() ? given.text() : "";
    if (kind == "json_object") {  // some clients add a schema to json_object
      const Value* schema = value.dict().find("schema");
      return json(schema != nullptr ? *schema : any_object(), param + ".schema");
    }
    if (kind == "json_schema") {
      const Value* inner = value.dict().find("json_schema");
      const Value* schema =
          inner != nullptr && inner->is_dict() ? inner->dict().find("schema") : nullptr;
      if (schema == nullptr) {
        shape(param + ".json_schema", inner == nullptr ? Value() : *inner,
              "an object with a \"schema\"");
      }
      return json(*schema, param + ".json_schema.schema");
    }
    if (kind == "structural_tag") return structural_tag(value, param, tokenizer_);
    if (kind == "regex" || kind == "grammar") {
      const bool pattern = kind == "regex" && value.dict().find("pattern") != nullptr;
      const std::string key = pattern ? "pattern" : kind;
      const Value* text = value.dict().find(std::string_view(key));
      return of_kind(kind, text == nullptr ? Value() : *text, param + "." + key);
    }
    shape(param + ".type", given,
          "'text', 'json_object', 'json_schema', 'structural_tag', 'regex' or 'grammar'");
  }

  Constraint structured_outputs(const Value& value) const {
    const std::string param = "structured_outputs";
    static const std::vector<std::string> kKinds = {"json",   "json_object", "regex",
                                                    "choice", "grammar",     "structural_tag"};
    static const std::vector<std::string> kOthers = {
        "disable_fallback",
        "disable_any_whitespace"};  // options that request the default behaviour
    if (!value.is_dict()) shape(param, value, "an object: {\"json\": {...}}");
    const auto is = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    bool unknown = false;
    for (const auto& [key, item] : value.dict().items) {
      if (key.text() == "whitespace_pattern" && !item.is_none()) {
        throw RequestError(
            "structured_outputs.whitespace_pattern is not enforced here: JSON comes on one line",
            "structured_outputs.whitespace_pattern", "unsupported_parameter");
      }
      unknown = unknown || (!is(kKinds, key.text()) && !is(kOthers, key.text()) &&
                            key.text() != "whitespace_pattern");
    }
    std::vector<std::string> requested;
    for (const std::string& kind : kKinds) {
      const Value* item = value.dict().find(std::string_view(kind));
      const bool off =
          item == nullptr || item->is_none() || (item->is(json::Kind::kBool) && !item->integer());
      if (!off) requested.push_back(kind);
    }
    if (unknown || requested.size() != 1) {
      Values names;
      for (const auto& item : value.dict().items) names.push_back(item.first);
      std::sort(names.begin(), names.end(),
                [](const Value& a, const Value& b) { return a.text() < b.text(); });
      std::string kinds;
      for (const std::string& kind : kKinds) kinds += (kinds.empty() ? "" : ", ") + kind;
      shape(param, json::make_list(std::move(names)), "exactly one of " + kinds);
    }
    const std::string where = param + "." + requested[0];
    const Value& given = *value.dict().find(std::string_view(requested[0]));
    if (requested[0] == "structural_tag") {
      return structural_tag(loaded(given, where), where, tokenizer_);
    }
    if (requested[0] == "json_object") return json(any_object(), where);
    return of_kind(requested[0], given, where);
  }

  Constraint of_kind(const std::string& kind, const Value& value, const std::string& param) const {
    if (kind == "json") return json(value, param);
    if (kind == "regex") return regex(value, param);
    return kind == "choice" ? choice(value, param) : grammar(value, param);
  }

  Constraint json(const Value& value, const std::string& param) const {
    const Value schema = loaded(value, param);
    if (!schema.is_dict() && !schema.is(json::Kind::kBool)) {
      throw RequestError(
          std::string("#: a schema is an object or a boolean, not ") + kind_of(schema), param,
          "unsupported_schema");
    }
    check_schema(schema, param);
    const std::string text = json::to_json(schema);
    if (const size_t size = unicode::count_code_points(text); size > kLongestSchema) {
      throw RequestError("#: " + std::to_string(size) + " characters as JSON; accepted are " +
                             std::to_string(kLongestSchema),
                         param, "unsupported_schema");
    }
    EbnfRules rules(tokenizer_, {});
    const std::string root = rules.json(schema, schema);
    return std::move(rules).constraint(root, param);
  }

  Constraint regex(const Value& value, const std::string& param) const {
    std::string pattern = checked_text(value, param, kLongestRegex);
    check_depth(pattern, param);
    // Removes anchors, because the whole output has to match anyway.
    if (pattern.compare(0, 1, "^") == 0) pattern.erase(0, 1);
    size_t backslashes = 0;
    while (pattern.size() > 1 + backslashes && pattern[pattern.size() - 2 - backslashes] == '\\') {
      ++backslashes;
    }
    const bool ends = !pattern.empty() && pattern.back() == '$' && backslashes % 2 == 0;
    if (ends) pattern.pop_back();
    if (pattern.empty()) return EbnfRules(tokenizer_, {}).constraint("\"\"", param);
    return EbnfRules(tokenizer_, {})
        .constraint("Regex(" + quoted(pattern) + ", flags=\"u\")", param);
  }

  Constraint choice(const Value& value, const std::string& param) const {
    const bool texts = value.is(json::Kind::kList) && !value.items().empty() &&
                       std::all_of(value.items().begin(), value.items().end(),
                                   [](const Value& one) { return one.is_string(); });
    if (!texts) shape(param, value, "a list of at least one text");
    std::string all, alternatives;
    for (const Value& one : value.items()) {
      all += one.text();
      alternatives += (alternatives.empty() ? "" : " | ") + quoted(one.text());
    }
    checked_text(Value(all), param, kLongestChoices);
    return EbnfRules(tokenizer_, {}).constraint(alternatives, param);
  }

  Constraint grammar(const Value& value, const std::string& param) const {
    const std::string& text = checked_text(value, param, kLongestGrammar);
    const bool gbnf = text.find("::=") != std::string::npos;
    if (gbnf) checked_text(value, param, kLongestGbnf);
    check_depth(groups_of(text, gbnf), param);
    if (const std::string rule = endless_rule(text); !rule.empty()) {
      invalid("The grammar has no end: each text of its rule " + rule + " needs the rule again",
              param);
    }
    EbnfRules rules(tokenizer_, {});
    const std::string root =
        rules.part(gbnf ? GrammarPart::Kind::kEbnf : GrammarPart::Kind::kLark, text);
    return std::move(rules).constraint(root, param);
  }

  static Value any_object() { return json::make_dict({{"type", "object"}}); }

  const Tokenizer& tokenizer_;
};

bool same(const Constraint& a, const Constraint& b) {
  return a.ebnf == b.ebnf &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const GrammarPart& x, const GrammarPart& y) {
                      return x.rule == y.rule && x.kind == y.kind && x.text == y.text;
                    });
}

}  // namespace

Value constraining_fields(const Fields& fields) {
  static const Value kText = json::make_dict({{"type", "text"}});
  std::vector<std::pair<Value, Value>> given;
  for (const char* name : kFields) {
    const Value* value = fields.find(name);
    if (value != nullptr && !json::equal(*value, kText)) given.emplace_back(name, *value);
  }
  return json::make_dict(std::move(given));
}

std::optional<Constraint> constraint_of(const Fields& fields, const Tokenizer& tokenizer) {
  std::vector<std::string> given;
  const Value named = constraining_fields(fields);
  for (const auto& item : named.dict().items) given.push_back(item.first.text());
  if (given.empty()) return std::nullopt;
  const Making making(tokenizer);
  if (given.size() == 1) return making.one(given[0], *fields.find(given[0]));
  // Some clients send one constraint in the fields of several servers.
  std::optional<Constraint> constraint;
  std::string names;
  bool differ = false;
  for (const std::string& name : given) {
    names += (names.empty() ? "" : ", ") + name;
    try {
      Constraint other = making.one(name, *fields.find(name));
      differ = differ || (constraint && !same(*constraint, other));
      if (!constraint) constraint = std::move(other);
    } catch (const RequestError&) {
      differ = true;
    }
  }
  if (differ) {
    throw RequestError("An output takes one constraint; " + names + " are several", names,
                       "invalid_grammar");
  }
  return constraint;
}

}  // namespace wherry::app
