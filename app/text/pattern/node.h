// A pattern's syntax tree.
#ifndef WHERRY_APP_TEXT_PATTERN_NODE_H_
#define WHERRY_APP_TEXT_PATTERN_NODE_H_

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "app/text/unicode/code_points.h"

namespace wherry::text {

inline constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

struct Node {
  enum Kind {
    kSequence,  // children, maybe none
    kChoice,    // the first child that leads to a match
    kSet,       // one character
    kRepeat,    // its child, least to most times
    kAtomic,    // never backtracks into its child's first match
    kAhead,     // lookahead
    kBehind,    // lookbehind
    kLineBegin,
    kLineEnd,
    kTextBegin,
    kTextEnd,
    kTextEndOrNewline,  // or before the newline that ends the text
    kWordBorder,
  };
  enum Greed { kGreedy, kLazy, kPossessive };

  Kind kind = kSequence;
  std::vector<Node> children;
  CodePoints set;
  uint32_t least = 0, most = 0;
  Greed greed = kGreedy;
  bool negated = false;  // of kAhead, kBehind and kWordBorder
};

// Throws Error with the reason and position if the pattern is invalid or not supported.
Node parse_pattern(std::string_view source);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_NODE_H_
