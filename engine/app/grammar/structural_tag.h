// Structural tags: free text until a trigger, from there a tag that is held to a schema.
//
// The format is vLLM's: {"structures": [{"begin", "schema", "end"}], "triggers": [...]}. A tag's
// `begin` starts with one of the triggers.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_STRUCTURAL_TAG_H_
#define WHERRY_ENGINE_APP_GRAMMAR_STRUCTURAL_TAG_H_

#include <string>

#include "app/grammar/constraint.h"
#include "app/template/value.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

// A trigger that is a special token's name is written as that token, any other as text. Throws
// RequestError: the shape is not understood, or a tag's schema cannot be enforced.
Constraint structural_tag(const jinja::Value& value, const std::string& param,
                          const Tokenizer& tokenizer);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_STRUCTURAL_TAG_H_
