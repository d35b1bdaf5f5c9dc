// Creates grammar rules for objects.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_OBJECTS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_OBJECTS_H_

#include "app/grammar/schema/values.h"

namespace wherry::app {

// Adds the rule of an object: declared properties in the order of the schema, then undeclared ones.
void add_objects(ValueRules& values, size_t rule, const Shape& shape);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_OBJECTS_H_
