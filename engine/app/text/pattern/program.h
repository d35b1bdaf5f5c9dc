// A pattern as instructions for the matcher.
#ifndef WHERRY_ENGINE_APP_TEXT_PATTERN_PROGRAM_H_
#define WHERRY_ENGINE_APP_TEXT_PATTERN_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "app/text/pattern/extent.h"
#include "app/text/pattern/node.h"

namespace wherry::text {

struct Instruction {
  enum Op : uint8_t {
    kMatch,    // the end of the pattern, or of the body of an assertion or an atomic group
    kSet,      // a character of sets[a]
    kRun,      // as many of sets[a] as there are, least to most; gives back one by one
    kRunKept,  // gives none back
    kSplit,    // goes on here if the next character is one of firsts[b], and at a if that fails
    kJump,     // to a
    kAhead,    // the body behind it would match; then on at a
    kBehind,   // the same, b characters before
    kAtomic,   // the body behind it matches; then on at a
    kNode,     // a: a Node::Kind that looks at the place alone
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

#endif  // WHERRY_ENGINE_APP_TEXT_PATTERN_PROGRAM_H_
