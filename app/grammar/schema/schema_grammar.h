// Converts a JSON Schema into a grammar in xgrammar's notation, for JSON on one line.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_SCHEMA_GRAMMAR_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_SCHEMA_GRAMMAR_H_

#include <string>
#include <vector>

#include "app/value/value.h"

namespace wherry::app {

struct SchemaGrammar {
  std::string rules;  // grammar rules, of which the first is `root`; "" if no value is valid
  // Keywords that cannot be enforced, each as "properties.a.oneOf: why".
  std::vector<std::string> problems;
};

// Returns a grammar that generates only valid values of `schema`; references are resolved in
// `root`. keywords.h lists the enforced keywords; other names constrain nothing.
SchemaGrammar schema_grammar(const json::Value& schema, const json::Value& root);

// The plain texts, written without quotes, that are valid for a schema.
struct PlainTexts {
  enum class Are { kNone, kSome, kAll } are;  // how many texts are valid
  bool alone;                                 // true if all valid values are texts
  std::string rules;  // for kSome: rules for the valid texts that do not contain `end`
};
PlainTexts plain_texts(const json::Value& schema, const json::Value& root, const std::string& end);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_SCHEMA_GRAMMAR_H_
