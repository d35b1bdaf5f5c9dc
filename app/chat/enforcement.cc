#include "app/chat/enforcement.h"

#include <algorithm>

#include "app/grammar/schema_audit.h"
#include "app/request/request_error.h"
#include "app/tools/custom_calls.h"

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

// Returns a schema of arguments as that of an object; a tool without parameters takes none.
Value of_object(const Value& schema) {
  std::vector<std::pair<Value, Value>> items = {{"type", "object"},
                                                {"properties", json::make_dict({})}};
  items.insert(items.end(), schema.dict().items.begin(), schema.dict().items.end());
  return json::make_dict(std::move(items));
}

// Returns the schema of a custom tool's arguments whose input follows a grammar.
Value of_input(const Value& schema, const InputGrammar& grammar, size_t index) {
  if (grammar.syntax != "regex") {
    const std::string where = "tools[" + std::to_string(index) + "].custom.format.grammar.syntax";
    throw RequestError(where + " is '" + grammar.syntax + "'; enforced here is 'regex'", where,
                       "unsupported_schema");
  }
  const Value input =
      json::make_dict({{"type", "string"}, {"pattern", "^(?:" + grammar.definition + ")$"}});
  std::vector<std::pair<Value, Value>> items = schema.dict().items;
  items.emplace_back("properties", json::make_dict({{kInputArgument, input}}));
  return json::make_dict(std::move(items));
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
    const json::Dict& function = asked.tools[i].dict().find("function")->dict();
    CallRule rule{function.find("name")->text(), of_object(*function.find("parameters")), "",
                  false};
    if (asked.inputs[i]) rule.schema = of_input(rule.schema, *asked.inputs[i], i);
    if (asked.strict[i]) check_schema(rule.schema, "tools");
    if (!enforceable(rule.schema)) {
      rule.schema = json::make_dict({{"type", "object"}});
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
