// Finds the parts of a schema that no value satisfies.
//
// xgrammar's rules leave such parts out (RuleSet). llguidance, the library of Python's server, does
// not notice them all: it writes the name of a property and then finds no value for it, so that an
// output fails in its middle. There, `false` takes the place of these parts.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_REPAIR_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_REPAIR_H_

#include <string>
#include <vector>

#include "app/value/value.h"

namespace wherry::app {

struct Repaired {
  json::Value schema;
  // Places without a valid value that cannot be left out, as "properties.a: why".
  std::vector<std::string> problems;
};

// Returns an equivalent schema without impossible parts; the schema itself if it has keywords that
// cannot be enforced here.
Repaired repaired(const json::Value& schema);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_REPAIR_H_
