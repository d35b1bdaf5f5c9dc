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
    kMatch,  // ends the pattern, or the body of an assertion or an atomic group
    kSet,    // matches a character of sets[a]
    // Matches the longest run of sets[a], from least to most characters; backtracks one character
    // at a time.
    kRun,
    kRunKept,  // matches a run as kRun does, without backtracking
    // Continues with the next instruction if the next character is in firsts[b], and at a if that
    // fails.
    kSplit,
    kJump,    // jumps to instruction a
    kAhead,   // tests whether the following body would match; continues at a
    kBehind,  // tests the following body b characters earlier; continues at a
    kAtomic,  // matches the following body without backtracking; continues at a
    kNode,    // tests only the position; a is a Node::Kind
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
  Firsts begin;  // possible first characters of the whole pattern
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_PROGRAM_H_
