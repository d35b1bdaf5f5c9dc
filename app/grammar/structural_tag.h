// Structural tags: free text up to a trigger, followed by a tag whose content conforms to a schema.
//
// The format is vLLM's: {"structures": [{"begin", "schema", "end"}], "triggers": [...]}. A tag's
// `begin` starts with one of the triggers.
#ifndef WHERRY_APP_GRAMMAR_STRUCTURAL_TAG_H_
#define WHERRY_APP_GRAMMAR_STRUCTURAL_TAG_H_

#include <string>

#include "app/grammar/constraint.h"
#include "app/text/tokenizer.h"
#include "app/value/value.h"

namespace wherry::app {

// Returns the constraint of a structural tag. A trigger that is a special token's name matches that
// token; any other trigger matches text. Throws RequestError for an invalid shape, or if a tag's
// schema cannot be enforced.
Constraint structural_tag(const json::Value& value, const std::string& param,
                          const Tokenizer& tokenizer);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_STRUCTURAL_TAG_H_
