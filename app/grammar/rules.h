// Builds a grammar rule by rule, in the notation of a library that compiles it.
#ifndef WHERRY_APP_GRAMMAR_RULES_H_
#define WHERRY_APP_GRAMMAR_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/value/value.h"

namespace wherry::app {

// Builds the rules of a grammar and their expressions. Expressions that follow each other match
// one after the other; they are grouped and repeated as in (a b)*, (a)? and (a | b). The name of a
// special token is written as that token's id, so that ordinary text does not match it.
class Rules {
 public:
  virtual ~Rules() = default;

  // Returns an expression that matches exactly this text.
  std::string text(std::string_view literal) const { return written(pieces(literal)); }
  // Returns an expression that matches any text without special tokens.
  virtual std::string any_text() = 0;
  // Returns an expression that matches any text that begins with a character of the class.
  virtual std::string text_beginning(const std::string& characters) = 0;
  // Returns an expression of a regular expression that consists of character classes, each of
  // which may be repeated. Both notations have them.
  virtual std::string characters(const std::string& classes) const = 0;
  // Returns an expression that matches any text up to and including the first `literal`.
  virtual std::string up_to(std::string_view literal) = 0;
  // Returns an expression that matches any text in which each literal of `rests` is followed by its
  // expression. The text ends there or, with `again`, continues. Throws RequestError if some
  // literals begin with special tokens and others do not, and the notation cannot mix them.
  virtual std::string amid_text(const std::vector<std::pair<std::string, std::string>>& rests,
                                bool again) = 0;
  // Returns an expression that matches a value of this schema as JSON on one line; `root` contains
  // the schema's definitions.
  virtual std::string json(const json::Value& schema, const json::Value& root) = 0;
  // Returns whether a value of this schema is plain text rather than JSON, outside of JSON, and the
  // grammar expression of the value followed by `end`. Throws an error if no grammar can hold plain
  // text to the schema.
  virtual std::pair<bool, std::string> element(const json::Value& schema, const json::Value& root,
                                               const std::string& end) = 0;
  // Defines a rule for an expression and returns its name. lazy: whether the rule takes the
  // shortest match.
  virtual std::string rule(const std::string& expression, bool lazy = false) = 0;
  std::string either(const std::vector<std::string>& expressions);

 protected:
  // Names and ids of special tokens.
  using Special = std::vector<std::pair<std::string, int32_t>>;
  explicit Rules(Special special);
  Rules(const Rules&) = default;

  // A part of a text: a special token's id, or -1 and characters.
  using Piece = std::pair<int32_t, std::string>;
  std::vector<Piece> pieces(std::string_view literal) const;
  virtual std::string written(const std::vector<Piece>& pieces) const = 0;

  std::string rules_;
  size_t count_ = 0;

 private:
  Special special_;  // the longest name first
};

// Returns a text as a quoted literal of the grammar.
std::string quoted(std::string_view text);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_RULES_H_
