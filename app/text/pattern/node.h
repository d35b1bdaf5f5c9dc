// The syntax tree of a parsed pattern.
#ifndef WHERRY_APP_TEXT_PATTERN_NODE_H_
#define WHERRY_APP_TEXT_PATTERN_NODE_H_

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "app/value/unicode/char_set.h"

namespace wherry::text {

using namespace unicode;

inline constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

struct Node {
  enum Kind {
    kSequence,  // matches the children in order; may have none
    kChoice,    // matches the first child that leads to a match
    kSet,       // matches one character of a set
    kRepeat,    // matches the child `least` to `most` times
    kAtomic,    // matches the child without backtracking into its first match
    kAhead,     // a lookahead assertion
    kBehind,    // a lookbehind assertion
    kLineBegin,
    kLineEnd,
    kTextBegin,
    kTextEnd,
    kTextEndOrNewline,  // matches at the end of the text, or before the newline that ends it
    kWordBorder,
  };
  enum Greed { kGreedy, kLazy, kPossessive };

  Kind kind = kSequence;
  std::vector<Node> children;
  CodePoints set;
  uint32_t least = 0, most = 0;
  Greed greed = kGreedy;
  bool negated = false;  // whether kAhead, kBehind or kWordBorder is negated
};

// Parses a pattern. Throws Error with the reason and position if the pattern is invalid or not
// supported.
Node parse_pattern(std::string_view source);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_NODE_H_
