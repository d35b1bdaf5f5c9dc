// Rewrites schemas part by part.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_SUBSCHEMAS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_SUBSCHEMAS_H_

#include <functional>

#include "app/grammar/schema/texts.h"
#include "app/value/value.h"

namespace wherry::app {

// Returns an equivalent schema in which patterns of few names are properties.
json::Value with_finite_names(const json::Value& schema, Texts& texts);

// Returns a schema with each of its subschemas replaced by what `changed` returns for it.
// replaceable: whether `false` in the subschema's place leaves out no more than the subschema.
json::Value with_parts(
    const json::Value& schema,
    const std::function<json::Value(const json::Value& part, bool replaceable)>& changed);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_SUBSCHEMAS_H_
