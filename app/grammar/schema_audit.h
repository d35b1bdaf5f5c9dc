// Rejects schemas with keywords that cannot be enforced, instead of ignoring the keywords.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_AUDIT_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_AUDIT_H_

#include <string>

#include "app/value/value.h"

namespace wherry::app {

// Whether the schema can be enforced completely.
bool enforceable(const json::Value& schema);
// Checks a schema. Throws RequestError with all keywords that cannot be enforced.
void check_schema(const json::Value& schema, const std::string& param);
// Returns the schema's grammar; see schema/schema_grammar.h. Throws RequestError as check_schema
// does.
std::string checked_rules(const json::Value& schema, const json::Value& root,
                          const std::string& param);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_AUDIT_H_
