// A pattern that splits or replaces text: a literal, or a regular expression as in tokenizers.
//
// The matcher is our own because no small library supports \p{L} and lookahead in bounded time:
// std::regex has no Unicode, RE2 has no lookahead, PCRE2 and Oniguruma are larger than the rest of
// this folder. It backtracks like Oniguruma, with the same results, and gives up after a number of
// steps that is proportional to the text's length.
#ifndef WHERRY_APP_TEXT_PATTERN_PATTERN_H_
#define WHERRY_APP_TEXT_PATTERN_PATTERN_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::text {

struct Program;

struct Match {
  size_t begin, end;  // bytes
};

class Pattern {
 public:
  // Compiles a regular expression. Throws Error if it is invalid.
  static Pattern regex(std::string_view source);
  static Pattern literal(std::string_view text);
  Pattern(Pattern&&) noexcept;
  ~Pattern();

  // Returns the non-overlapping matches from left to right; `text` must be well-formed UTF-8. An
  // empty match does not directly follow another match. Throws Error after too many steps.
  std::vector<Match> all(std::string_view text) const;

 private:
  Pattern();
  // Compiled regular expression; nullptr if the pattern is a literal.
  std::unique_ptr<const Program> program_;
  std::string literal_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_PATTERN_H_
