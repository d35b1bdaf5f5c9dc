#include "app/grammar/schema_audit.h"

#include "app/grammar/schema/schema_grammar.h"
#include "app/request/request_error.h"

namespace wherry::app {

bool enforceable(const json::Value& schema) {
  const SchemaGrammar grammar = schema_grammar(schema, schema);
  return grammar.problems.empty() && !grammar.rules.empty();
}

std::string checked_rules(const json::Value& schema, const json::Value& root,
                          const std::string& param) {
  SchemaGrammar grammar = schema_grammar(schema, root);
  std::string names;
  for (const std::string& name : grammar.problems) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty()) {
    throw RequestError("The schema has keywords that are not enforced here: " + names, param,
                       "unsupported_schema");
  }
  if (grammar.rules.empty()) {
    throw RequestError("The schema has no value that is valid", param, "invalid_grammar");
  }
  return std::move(grammar.rules);
}

void check_schema(const json::Value& schema, const std::string& param) {
  checked_rules(schema, schema, param);
}

}  // namespace wherry::app
