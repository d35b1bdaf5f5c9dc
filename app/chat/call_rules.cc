#include "app/chat/call_rules.h"

#include "app/grammar/schema_audit.h"
#include "app/request/request_error.h"
#include "app/tools/custom_calls.h"

namespace wherry::app {

namespace {

// Returns the schema of a custom tool's arguments whose input follows a grammar.
Value schema_of_input(const Value& schema, const InputGrammar& grammar, size_t index) {
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

void check_strict(const CallRule& rule, const Texts& unenforced) {
  check_schema(rule.schema, "tools");
  if (unenforced.empty()) return;
  throw RequestError("The parameters of " + rule.name + " cannot be enforced: " + unenforced[0],
                     "tools", "unsupported_schema");
}

}  // namespace

Value arguments_schema(const Value& parameters) {
  std::vector<std::pair<Value, Value>> items = {{"type", "object"},
                                                {"properties", json::make_dict({})}};
  if (parameters.is_dict()) {
    items.insert(items.end(), parameters.dict().items.begin(), parameters.dict().items.end());
  }
  return json::make_dict(std::move(items));
}

CallRules call_rules(const RequestedTools& tools, const Format& format, EbnfRules& rules) {
  CallRules calls;
  for (size_t i = 0; i < tools.tools.size(); ++i) {
    const json::Dict& function = tools.tools[i].dict().find("function")->dict();
    CallRule rule;
    rule.name = function.find("name")->text();
    rule.schema = arguments_schema(*function.find("parameters"));
    if (tools.inputs[i]) rule.schema = schema_of_input(rule.schema, *tools.inputs[i], i);
    const Texts unenforced = format.unenforced(rule.schema);
    if (tools.strict[i]) check_strict(rule, unenforced);
    if (!unenforced.empty() || !enforceable(rule.schema)) {
      rule.schema = json::make_dict({{"type", "object"}});
      rule.open = true;
    }
    rule.arguments = rules.json(rule.schema, rule.schema);
    calls.push_back(std::move(rule));
  }
  return calls;
}

}  // namespace wherry::app
