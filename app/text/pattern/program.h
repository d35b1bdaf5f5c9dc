// Compiles a pattern into instructions for the matcher.
#ifndef WHERRY_APP_TEXT_PATTERN_PROGRAM_H_
#define WHERRY_APP_TEXT_PATTERN_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "app/text/pattern/extent.h"
#include "app/text/pattern/node.h"

namespace wherry::text {

struct Instruction {
  enum Op : uint8_t {
    kMatch,  // the end of the pattern, or of the body of an assertion or an atomic group
    kSet,    // a character of sets[a]
    kRun,    // the longest run of sets[a], from least to most characters; backtracks one at a time
    kRunKept,  // without backtracking
    kSplit,    // continues here if the next character is in firsts[b], and at a if that fails
    kJump,     // to a
    kAhead,    // the following body would match; continues at a
    kBehind,   // the same, b characters earlier
    kAtomic,   // the following body matches; continues at a
    kNode,     // a: a Node::Kind that only tests the position
  };
  Op op;
  bool negated = false;
  uint32_t a = 0, b = 0;
  uint32_t least = 0, most = 0;
};

struct Program {
  explicit Program(const Node& node);

  std::vector<Instruction> code;
  std::vector<CharSet> sets;
  std::vector<Firsts> firsts;
  Firsts begin;  // of the whole pattern
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_PROGRAM_H_
