// Rewrites schemas part by part.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_SUBSCHEMAS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_SUBSCHEMAS_H_

#include <functional>

#include "app/grammar/schema/texts.h"
#include "app/template/value.h"

namespace wherry::app {

// Returns an equivalent schema in which patterns of few names are properties.
jinja::Value with_finite_names(const jinja::Value& schema, Texts& texts);

// Returns a schema with each of its subschemas replaced by what `changed` returns for it.
// replaceable: whether `false` in the subschema's place leaves out no more than the subschema.
jinja::Value with_parts(
    const jinja::Value& schema,
    const std::function<jinja::Value(const jinja::Value& part, bool replaceable)>& changed);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_SUBSCHEMAS_H_
