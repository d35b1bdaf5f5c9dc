#include "app/chat/enforcement.h"

#include <algorithm>

#include "app/grammar/schema_audit.h"

namespace wherry::app {

namespace {

Texts names_of(const Family* family, const std::optional<Thoughts>& thoughts) {
  Texts made;
  if (family != nullptr) {
    made = family->format->markers();
    made.insert(made.end(), family->stops.begin(), family->stops.end());
  }
  if (thoughts) made.insert(made.end(), {thoughts->begin, thoughts->end});
  return made;
}

// Returns an object schema with `additionalProperties: false` if it does not mention them. The
// values of the closed schema are valid for the open one, too; a model that may add any property
// might never end.
Value closed(const Value& schema) {
  static const char* const kSaysMore[] = {
      "additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"};
  std::vector<std::pair<Value, Value>> items = {{"type", "object"}};
  items.insert(items.end(), schema.dict().items.begin(), schema.dict().items.end());
  const bool open = std::none_of(std::begin(kSaysMore), std::end(kSaysMore), [&](const char* name) {
    return schema.dict().find(name) != nullptr;
  });
  if (open) items.emplace_back("additionalProperties", Value(false));
  return jinja::make_dict(std::move(items));
}

}  // namespace

Enforcement::Enforcement(const Family* family, const std::optional<Thoughts>& thoughts, bool opened,
                         const Tokenizer& tokenizer)
    : family_(family),
      thoughts_(thoughts),
      opened_(opened),
      rules_(tokenizer, names_of(family, thoughts)) {}

Constraint Enforcement::calls(const AskedTools& asked) {
  const CallRules rules = rules_of(asked);
  return made(family_->format->forced(rules_, rules, !asked.one), "tools");
}

Constraint Enforcement::text_or_calls(const AskedTools& asked) {
  const CallRules rules = rules_of(asked);
  return made(family_->format->free(rules_, rules, !asked.one), "tools");
}

Constraint Enforcement::held(const Constraint& base, const AskedTools& asked) {
  const bool channels = family_ != nullptr && family_->channels;
  if (asked.tools.empty() && !thoughts_ && !channels) return base;
  std::string body = rules_.included(base);
  if (family_ != nullptr) body = family_->format->answer(rules_, body);
  if (!asked.tools.empty()) {
    const CallRules rules = rules_of(asked);
    body = rules_.either({body, family_->format->forced(rules_, rules, !asked.one)});
  }
  return made(body, base.param);
}

CallRules Enforcement::rules_of(const AskedTools& asked) {
  CallRules made;
  for (size_t i = 0; i < asked.tools.size(); ++i) {
    const jinja::Dict& function = asked.tools[i].dict().find("function")->dict();
    CallRule rule{function.find("name")->text(), closed(*function.find("parameters")), "", false};
    if (asked.strict[i]) check_schema(rule.schema, "tools");
    if (!enforceable(rule.schema)) {
      rule.schema = jinja::make_dict({{"type", "object"}});
      rule.open = true;
    }
    rule.arguments = rules_.json(rule.schema, rule.schema);
    made.push_back(std::move(rule));
  }
  return made;
}

Constraint Enforcement::made(const std::string& body, const std::string& param) {
  std::string root = body;
  if (thoughts_) {
    const std::string rest = rules_.up_to(thoughts_->end) + " [ \\n]{0,4}";
    root = opened_ ? rest + " " + body
                   : "(" + rules_.text(thoughts_->begin) + " " + rest + ")? " + body;
  }
  return std::move(rules_).made(root, param);
}

}  // namespace wherry::app
