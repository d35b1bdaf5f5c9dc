#include "app/tools/markup_element.h"

#include "app/grammar/schema/schema_grammar.h"
#include "app/grammar/schema/steps.h"
#include "app/request/request_error.h"

namespace wherry::app {

using json::Value;

namespace {

PlainTexts texts_of(const Value& schema, const Value& root, const std::string& end) {
  try {
    return plain_texts(schema, root, end);
  } catch (const NotEnforced& problem) {
    throw RequestError(
        std::string("The schema of an argument is not enforced here: ") + problem.what(), "tools",
        "unsupported_schema");
  }
}

}  // namespace

std::pair<bool, std::string> markup_element(Rules& rules, const Value& given, const Value& root,
                                            const std::string& end) {
  const PlainTexts texts = texts_of(given, root, end);
  if (texts.are == PlainTexts::Are::kAll) return {texts.alone, rules.up_to(end)};
  const bool plain = texts.are == PlainTexts::Are::kSome && texts.alone;
  const std::string value =
      plain ? rules.part(GrammarPart::Kind::kRules, texts.rules) : rules.json(given, root);
  return {plain, value + " " + rules.text(end)};
}

}  // namespace wherry::app
