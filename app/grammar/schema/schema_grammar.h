// Converts a JSON Schema into a grammar in xgrammar's notation, for JSON on one line.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_SCHEMA_GRAMMAR_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_SCHEMA_GRAMMAR_H_

#include <string>
#include <vector>

#include "app/template/value.h"

namespace wherry::app {

struct SchemaGrammar {
  std::string rules;                  // the first is `root`; "": no value is valid
  std::vector<std::string> problems;  // keywords that cannot be enforced, "properties.a.oneOf: why"
};

// The grammar generates only valid values of `schema`; references are resolved in `root`.
// keywords.h lists the enforced keywords; other names constrain nothing.
SchemaGrammar schema_grammar(const jinja::Value& schema, const jinja::Value& root);

// The set of plain texts, written without quotes, that are valid for a schema.
struct PlainTexts {
  enum class Are { kNone, kSome, kAll } are;  // which texts are valid
  bool alone;                                 // all valid values are texts
  std::string rules;  // for kSome: the valid texts that do not contain `end`
};
PlainTexts plain_texts(const jinja::Value& schema, const jinja::Value& root,
                       const std::string& end);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_SCHEMA_GRAMMAR_H_
