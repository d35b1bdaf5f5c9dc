// Creates grammar rules for lists (JSON arrays).
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_LISTS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_LISTS_H_

#include "app/grammar/schema/values.h"

namespace wherry::app {

void add_lists(ValueRules& values, size_t rule, const Shape& shape);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_LISTS_H_
