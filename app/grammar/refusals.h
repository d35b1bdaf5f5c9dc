// Errors for constraints that cannot be enforced.
#ifndef WHERRY_APP_GRAMMAR_REFUSALS_H_
#define WHERRY_APP_GRAMMAR_REFUSALS_H_

#include <string>

#include "app/request/request_error.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

// Checks that the bytes of the tokenizer's tokens are known. Throws RequestError if not.
void require_token_bytes(const Tokenizer& tokenizer);

// Returns the error for a constraint that cannot be enforced. param: the field with the constraint.
RequestError cannot_enforce(const std::string& param, const std::string& reason);

// Returns the error for a constraint in a program that was built without a grammar compiler.
RequestError without_grammars(const std::string& param);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_REFUSALS_H_
