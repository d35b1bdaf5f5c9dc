// Builds a grammar in xgrammar's notation.
#ifndef WHERRY_APP_GRAMMAR_EBNF_RULES_H_
#define WHERRY_APP_GRAMMAR_EBNF_RULES_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/grammar/constraint.h"
#include "app/grammar/rules.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

class EbnfRules : public Rules {
 public:
  // names: texts that may be names of special tokens.
  EbnfRules(const Tokenizer& tokenizer, const std::vector<std::string>& names);

  std::string any_text() override;
  std::string text_beginning(const std::string& characters) override;
  std::string characters(const std::string& classes) const override { return classes; }
  std::string up_to(std::string_view literal) override;
  std::string amid_text(const std::vector<std::pair<std::string, std::string>>& rests,
                        bool again) override;
  std::string json(const json::Value& schema, const json::Value& root) override;
  std::pair<bool, std::string> element(const json::Value& schema, const json::Value& root,
                                       const std::string& end) override;
  std::string rule(const std::string& expression, bool lazy = false) override;

  std::string part(GrammarPart::Kind kind, std::string text);
  // Includes another grammar, once, and returns a reference to it.
  std::string included(const Constraint& base);
  // Returns the constraint whose root is this expression.
  Constraint constraint(const std::string& root, std::string param) &&;

 private:
  std::string written(const std::vector<Piece>& pieces) const override;

  std::string special_ids_;  // ids of all special tokens of the model, written as "1,2,"
  std::vector<GrammarPart> parts_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_EBNF_RULES_H_
