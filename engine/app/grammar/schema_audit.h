// What of JSON Schema is enforced; what is not is refused by name, never ignored. The keywords are
// those of web/src/grammar/schema_audit.ts, whose library this is, too.
//
// xgrammar reads of a schema what comes first of $ref, const, enum, anyOf and type, and leaves the
// others: so do the rules here.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_SCHEMA_AUDIT_H_
#define WHERRY_ENGINE_APP_GRAMMAR_SCHEMA_AUDIT_H_

#include <string>
#include <vector>

#include "app/template/value.h"

namespace wherry::app {

// The keywords of a schema that would not be enforced, and where they are.
std::vector<std::string> unenforced_in(const jinja::Value& schema);
// Throws RequestError naming all of them.
void check_schema(const jinja::Value& schema, const std::string& param);
// The schema that is compiled, as JSON: one that is enforced, written so that xgrammar reads it.
std::string prepared(const jinja::Value& schema);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_SCHEMA_AUDIT_H_
