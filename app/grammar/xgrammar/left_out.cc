// Replaces two of xgrammar's sources: its structural tags, which the project does not use, and its
// JSON Schema converter, which was a quarter of its code. Our converter reads `%json` in Lark
// grammars.
#include "app/grammar/schema/schema_grammar.h"
#include "app/value/json_text.h"
#include "json_schema_converter.h"
#include "structural_tag.h"
#include "support/error.h"

namespace xgrammar {

Result<Grammar, StructuralTagError> StructuralTagToGrammar(const std::string&,
                                                           const std::optional<TokenizerInfo>&) {
  return ResultErr(InvalidStructuralTagError("left out"));
}

Grammar JSONSchemaToGrammar(const std::string& schema, bool, std::optional<int>,
                            std::optional<std::pair<std::string, std::string>>, bool,
                            std::optional<int>, bool, JSONFormat, std::vector<std::string>) {
  const wherry::json::Value value = wherry::json::from_json(schema);
  const wherry::app::SchemaGrammar grammar = wherry::app::schema_grammar(value, value);
  for (const std::string& problem : grammar.problems) {
    throw wherry::Error(WHERRY_INVALID_ARGUMENT, "%json: not enforced here: " + problem);
  }
  return Grammar::FromEBNF(grammar.rules);
}

}  // namespace xgrammar
