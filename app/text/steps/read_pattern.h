// Reads the pattern of a tokenizer component of the type Split or Replace.
#ifndef WHERRY_APP_TEXT_STEPS_READ_PATTERN_H_
#define WHERRY_APP_TEXT_STEPS_READ_PATTERN_H_

#include "app/text/json/json.h"
#include "app/text/pattern/pattern.h"

namespace wherry::text {

// Reads the pattern of a component with "pattern": {"String": ...} or {"Regex": ...}.
Pattern read_pattern(const Json& component);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_READ_PATTERN_H_
