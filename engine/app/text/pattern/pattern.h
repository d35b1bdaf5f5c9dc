// What splits and replaces: a text, or a regular expression as tokenizers have them.
//
// A matcher of our own, because no small library knows \p{L}, looks ahead, and has bounded time:
// std::regex has no Unicode, RE2 does not look ahead, PCRE2 and Oniguruma are larger than the rest
// of this room together. It goes back and tries again like Oniguruma, whose answers these are, and
// gives up after a number of steps that grows with the text's length.
#ifndef WHERRY_ENGINE_APP_TEXT_PATTERN_PATTERN_H_
#define WHERRY_ENGINE_APP_TEXT_PATTERN_PATTERN_H_

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
  // Throws Error for a pattern that cannot be read.
  static Pattern regex(std::string_view source);
  static Pattern literal(std::string_view text);
  Pattern(Pattern&&) noexcept;
  ~Pattern();

  // The matches from left to right, none overlapping another; `text` is well-formed UTF-8. An
  // empty one does not follow directly upon another match. Throws Error after too many steps.
  std::vector<Match> all(std::string_view text) const;

 private:
  Pattern();
  std::unique_ptr<const Program> program_;  // nullptr: the text itself
  std::string literal_;
};

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_PATTERN_PATTERN_H_
