// From a request's fields to a constraint: OpenAI's, and beside them vLLM's and llama.cpp's. As
// runtime_py/grammar/fields.py, with the same errors.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_FIELDS_H_
#define WHERRY_ENGINE_APP_GRAMMAR_FIELDS_H_

#include <optional>

#include "app/chat/fields.h"
#include "app/grammar/constraint.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

// What the fields of a request ask for. Throws RequestError: several constraints, a shape that is
// not understood, or a schema that cannot be enforced.
std::optional<Constraint> constraint_of(const Fields& fields, const Tokenizer& tokenizer);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_FIELDS_H_
