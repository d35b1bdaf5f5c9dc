// Reads a constraint from a request's fields: those of OpenAI, vLLM and llama.cpp.
#ifndef WHERRY_APP_GRAMMAR_FIELDS_H_
#define WHERRY_APP_GRAMMAR_FIELDS_H_

#include <optional>

#include "app/grammar/constraint.h"
#include "app/request/fields.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

// Returns the fields of a request that constrain its output; an empty object if none does.
Value constraining_fields(const Fields& fields);

// Returns the constraint of a request, if it has one. Throws RequestError for several constraints,
// an invalid shape, or a schema that cannot be enforced.
std::optional<Constraint> constraint_of(const Fields& fields, const Tokenizer& tokenizer);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_FIELDS_H_
