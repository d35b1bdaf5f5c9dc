// Builds a grammar rule by rule.
#ifndef WHERRY_APP_GRAMMAR_RULES_H_
#define WHERRY_APP_GRAMMAR_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/grammar/constraint.h"
#include "app/text/tokenizer.h"
#include "app/value/value.h"

namespace wherry::app {

// Builds the rules of a grammar and their expressions. The name of a special token is written as
// that token's id, so that ordinary text does not match it.
class Rules {
 public:
  // names: texts that may be names of special tokens.
  Rules(const Tokenizer& tokenizer, const std::vector<std::string>& names);

  // Returns an expression that matches exactly this text.
  std::string text(std::string_view literal) const;
  // Returns an expression that matches any text up to and including the first `literal`.
  std::string up_to(std::string_view literal);
  // Returns an expression that matches any text in which each literal of `rests` is followed by its
  // expression. The text ends there or, with `again`, continues. Throws RequestError if some
  // literals begin with special tokens and others do not.
  std::string amid_text(const std::vector<std::pair<std::string, std::string>>& rests, bool again);
  // Returns an expression that matches a value of this schema as JSON on one line; `root` contains
  // the schema's definitions.
  std::string json(const json::Value& schema, const json::Value& root);
  std::string part(GrammarPart::Kind kind, std::string text);
  // Includes another grammar, once, and returns a reference to it.
  std::string included(const Constraint& base);
  // Defines a rule for an expression and returns its name. lazy: whether the rule takes the
  // shortest match.
  std::string rule(const std::string& expression, bool lazy = false);
  std::string either(const std::vector<std::string>& expressions);

  // Returns the constraint whose root is this expression.
  Constraint made(const std::string& root, std::string param) &&;

 private:
  // A part of a text: a special token's id, or -1 and characters.
  using Piece = std::pair<int32_t, std::string>;
  std::vector<Piece> pieces(std::string_view literal) const;
  std::string written(const std::vector<Piece>& pieces) const;

  // Names and ids of special tokens, the longest name first.
  std::vector<std::pair<std::string, int32_t>> special_;
  std::string special_ids_;  // ids of all special tokens of the model, written as "1,2,"
  std::string rules_;
  std::vector<GrammarPart> parts_;
  size_t count_ = 0;
};

// Returns a text as a quoted literal of the grammar.
std::string quoted(std::string_view text);

constexpr char kAnyText[] = "[^]*";  // matches any text without special tokens

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_RULES_H_
