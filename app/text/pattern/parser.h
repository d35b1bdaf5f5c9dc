// Parses patterns in the subset of Oniguruma's syntax that tokenizers use.
#ifndef WHERRY_APP_TEXT_PATTERN_PARSER_H_
#define WHERRY_APP_TEXT_PATTERN_PARSER_H_

#include <optional>
#include <string>
#include <string_view>

#include "app/text/pattern/node.h"

namespace wherry::text {

class PatternParser {
 public:
  explicit PatternParser(std::string_view source) : source_(source) {}
  Node parse();

 private:
  Node choice();
  Node sequence();
  Node repeated(Node node);
  // Parses {n,m} into a repeat without its child; returns nothing if the text is a literal.
  std::optional<Node> bounds();
  Node atom();
  Node group();
  Node escaped();
  Node of(CodePoints set);
  Node enclosing(Node::Kind kind, bool negated);

  // Parse character classes; parser_classes.cc implements them.
  CodePoints bracketed();  // starts after the opening [
  // Parses \s, \p{L}, ...; returns nothing for a single character.
  std::optional<CodePoints> class_escape(char32_t c);
  CodePoints property(bool negated);
  std::optional<CodePoints> posix_class();
  char32_t escaped_char(char32_t c);
  CodePoints in_both_cases(CodePoints set) const;

  bool more() const { return at_ < source_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : 0;
  }
  bool take(std::string_view text);
  char32_t take_char();
  uint32_t hex(size_t least, size_t most);
  [[noreturn]] void fail(const std::string& what) const;

  std::string_view source_;
  size_t at_ = 0;
  int depth_ = 0;
  bool any_case_ = false;    // whether the option (?i) ignores case
  bool dot_is_all_ = false;  // whether the option (?m) lets a dot match a newline, as in Oniguruma
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_PARSER_H_
