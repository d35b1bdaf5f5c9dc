// A grammar as it is written, rule by rule.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_RULES_H_
#define WHERRY_ENGINE_APP_GRAMMAR_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/grammar/constraint.h"
#include "app/template/value.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

// Makes the rules, and the expressions that they are made of. A name of a special token is written
// as that token: no text matches it.
class Rules {
 public:
  // names: what may be a special token.
  Rules(const Tokenizer& tokenizer, const std::vector<std::string>& names);

  // Exactly this text.
  std::string text(std::string_view literal) const;
  // Any text, and at its end the first `literal`.
  std::string up_to(std::string_view literal);
  // Any text in which each of some literals begins what is said beside it; that ends it, or, with
  // `again`, more text follows. Throws RequestError where some literals begin with special tokens
  // and others do not.
  std::string amid_text(const std::vector<std::pair<std::string, std::string>>& rests, bool again);
  // A value of this schema, whose definitions lie in `root`, as JSON on one line.
  std::string json(const jinja::Value& schema, const jinja::Value& root);
  std::string part(GrammarPart::Kind kind, std::string text);
  // All that another grammar says; once.
  std::string included(const Constraint& base);
  // Gives an expression a name. lazy: it ends as soon as it can.
  std::string rule(const std::string& expression, bool lazy = false);
  std::string either(const std::vector<std::string>& expressions);

  // The grammar, of which this expression is the whole output.
  Constraint made(const std::string& root, std::string param) &&;

 private:
  // A piece of a text: a special token's id, or -1 and characters.
  using Piece = std::pair<int32_t, std::string>;
  std::vector<Piece> pieces(std::string_view literal) const;
  std::string written(const std::vector<Piece>& pieces) const;

  std::vector<std::pair<std::string, int32_t>> special_;  // names, the longer first
  std::string special_ids_;  // of all special tokens of the model, "1,2,"
  std::string rules_;
  std::vector<GrammarPart> parts_;
  size_t count_ = 0;
};

// A text in quotes, as grammars write it.
std::string quoted(std::string_view text);

constexpr char kAnyText[] = "[^]*";  // special tokens are never part of it

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_RULES_H_
