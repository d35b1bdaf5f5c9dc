#include "app/text/pattern/matcher.h"

#include "app/value/code_points.h"
#include "app/value/unicode/properties.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

namespace {

// Upper bound on matching steps: typical texts take some ten steps per byte; a hundred times as
// many indicate an attack.
constexpr size_t kSteps = 1000000, kStepsPerByte = 1000;

bool is_pattern_word(char32_t code) {
  static const CharSet set(pattern_words());
  return set.contains(code);
}

}  // namespace

Matcher::Matcher(const Program& program, std::string_view text)
    : program_(program), text_(text), steps_left_(kSteps + kStepsPerByte * text.size()) {}

void Matcher::spend(size_t steps) {
  if (steps > steps_left_) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("a text of ", text_.size(), " bytes takes more than ",
                       kSteps + kStepsPerByte * text_.size(), " steps of the tokenizer's pattern"));
  }
  steps_left_ -= steps;
}

// Returns the end of a run and, in `least`, how far the matcher may backtrack; kNone if the run is
// too short.
size_t Matcher::run_end(const Instruction& instruction, size_t at, size_t& least) const {
  const CharSet& set = program_.sets[instruction.a];
  uint32_t n = 0;
  least = instruction.least == 0 ? at : kNone;
  while (n < instruction.most && at < text_.size()) {
    auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 128) {
      if (!set.ascii(byte)) break;
      ++at;
    } else {
      size_t behind = at;
      if (!set.contains(next_code_point(text_, behind))) break;
      at = behind;
    }
    if (++n == instruction.least) least = at;
  }
  return n < instruction.least ? kNone : at;
}

bool Matcher::holds(Node::Kind kind, size_t at) const {
  switch (kind) {
    case Node::kLineBegin:
      return at == 0 || (text_[at - 1] == '\n' && at < text_.size());
    case Node::kLineEnd:
      return at == text_.size() || text_[at] == '\n';
    case Node::kTextBegin:
      return at == 0;
    case Node::kTextEnd:
      return at == text_.size();
    case Node::kTextEndOrNewline:
      return at == text_.size() || (at + 1 == text_.size() && text_[at] == '\n');
    default: {  // the kind kWordBorder
      size_t left = at == 0 ? 0 : before(text_, at), right = at;
      bool word_left = at > 0 && is_pattern_word(next_code_point(text_, left));
      bool word_right = at < text_.size() && is_pattern_word(next_code_point(text_, right));
      return word_left != word_right;
    }
  }
}

bool Matcher::enclosed(const Instruction& instruction, uint32_t pc, size_t& at) {
  size_t begin = at;
  if (instruction.op == Instruction::kBehind) {
    for (uint32_t i = 0; i < instruction.b; ++i) {
      if (begin == 0) return instruction.negated;
      begin = before(text_, begin);
    }
  }
  size_t end = run(pc + 1, begin);
  if (instruction.op == Instruction::kAtomic) {
    at = end;
    return end != kNone;
  }
  return (end != kNone) != instruction.negated;
}

size_t Matcher::run(uint32_t pc, size_t at) {
  const size_t bottom = choices_.size();
  for (;;) {
    spend(1);
    const Instruction& instruction = program_.code[pc];
    bool good = true;
    switch (instruction.op) {
      case Instruction::kMatch:
        choices_.resize(bottom);
        return at;
      case Instruction::kSet:
        good = at < text_.size();
        if (good) {
          size_t behind = at;
          good = program_.sets[instruction.a].contains(next_code_point(text_, behind));
          at = behind;
        }
        ++pc;
        break;
      case Instruction::kRun:
      case Instruction::kRunKept: {
        size_t least, end = run_end(instruction, at, least);
        good = end != kNone;
        if (!good) break;
        spend((end - at) / 8);
        at = end;
        ++pc;
        if (instruction.op == Instruction::kRun && least < end) choices_.push_back({pc, at, least});
        break;
      }
      case Instruction::kSplit:
        if (program_.firsts[instruction.b][first(at)]) {
          choices_.push_back({instruction.a, at, kNone});
          ++pc;
        } else {
          pc = instruction.a;
        }
        break;
      case Instruction::kJump:
        pc = instruction.a;
        break;
      case Instruction::kAhead:
      case Instruction::kBehind:
      case Instruction::kAtomic:
        good = enclosed(instruction, pc, at);
        pc = instruction.a;
        break;
      case Instruction::kNode:
        good = holds(static_cast<Node::Kind>(instruction.a), at) != instruction.negated;
        ++pc;
        break;
    }
    if (good) continue;
    if (choices_.size() == bottom) return kNone;
    Choice& choice = choices_.back();
    pc = choice.pc;
    if (choice.least == kNone) {
      at = choice.at;
      choices_.pop_back();
    } else {
      at = choice.at = before(text_, choice.at);
      if (at == choice.least) choices_.pop_back();
    }
  }
}

}  // namespace wherry::text
