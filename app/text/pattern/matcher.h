// Executes a pattern's compiled program at a position of a text.
#ifndef WHERRY_APP_TEXT_PATTERN_MATCHER_H_
#define WHERRY_APP_TEXT_PATTERN_MATCHER_H_

#include <string_view>
#include <vector>

#include "app/text/pattern/program.h"

namespace wherry::text {

class Matcher {
 public:
  Matcher(const Program& program, std::string_view text);

  static constexpr size_t kNone = static_cast<size_t>(-1);
  // Returns the end of a match that begins at `begin`; kNone if there is no match.
  size_t end_of(size_t begin) { return run(0, begin); }
  // Whether the first character of a match can be the one at `at`.
  bool may_begin(size_t at) const { return program_.begin[first(at)]; }

 private:
  struct Choice {
    uint32_t pc;
    size_t at;
    size_t least;  // minimum end of a run, for backtracking; kNone for a split
  };

  size_t run(uint32_t pc, size_t at);
  bool enclosed(const Instruction& instruction, uint32_t pc, size_t& at);
  bool holds(Node::Kind kind, size_t at) const;
  size_t run_end(const Instruction& instruction, size_t at, size_t& least) const;
  size_t first(size_t at) const {  // returns the character's index into Firsts
    if (at == text_.size()) return 128;
    auto byte = static_cast<unsigned char>(text_[at]);
    return byte < 128 ? byte : 128;
  }
  void spend(size_t steps);

  const Program& program_;
  std::string_view text_;
  std::vector<Choice> choices_;
  size_t steps_left_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_MATCHER_H_
