// A pattern as a tree.
#ifndef WHERRY_ENGINE_APP_TEXT_PATTERN_NODE_H_
#define WHERRY_ENGINE_APP_TEXT_PATTERN_NODE_H_

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
    kAtomic,    // what its child matched first stays
    kAhead,     // its child would match here
    kBehind,    // its child would match up to here
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

// Throws Error for what is no pattern, or has what is not supported; the text says which and where.
Node parse_pattern(std::string_view source);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_PATTERN_NODE_H_
