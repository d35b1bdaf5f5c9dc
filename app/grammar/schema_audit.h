// Rejects schemas with keywords that cannot be enforced, instead of ignoring the keywords.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_AUDIT_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_AUDIT_H_

#include <string>

#include "app/template/value.h"

namespace wherry::app {

// Whether the schema can be enforced completely.
bool enforceable(const jinja::Value& schema);
// Checks a schema. Throws RequestError with all keywords that cannot be enforced.
void check_schema(const jinja::Value& schema, const std::string& param);
// Returns the schema's grammar; see schema/schema_grammar.h. Throws RequestError as check_schema
// does.
std::string checked_rules(const jinja::Value& schema, const jinja::Value& root,
                          const std::string& param);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_AUDIT_H_
