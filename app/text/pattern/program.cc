#include "app/text/pattern/program.h"

#include <utility>

#include "app/text/pattern/extent.h"
#include "support/error.h"

namespace wherry::text {

namespace {

// Upper bound on instructions, because counted repetitions of groups are copied.
constexpr size_t kLongest = 20000;

Firsts any() { return ~Firsts(); }

class Compiler {
 public:
  explicit Compiler(Program& program) : program_(program) {}
  void add(const Node& node);
  uint32_t put(Instruction instruction);

 private:
  uint32_t here() const { return static_cast<uint32_t>(program_.code.size()); }
  uint32_t set(const CodePoints& members);
  uint32_t firsts(const Firsts& members);
  void choice(const Node& node);
  void repeat(const Node& node);
  void optional(const Node& body, bool lazy, bool again);
  void enclosed(const Node& node, Instruction::Op op);

  Program& program_;
  std::vector<CodePoints> known_;  // the characters of each set, to share equal sets
};

uint32_t Compiler::put(Instruction instruction) {
  if (program_.code.size() == kLongest) {
    throw Error(WHERRY_INVALID_ARGUMENT, "a pattern is too long: its counted groups are copied");
  }
  program_.code.push_back(instruction);
  return here() - 1;
}

uint32_t Compiler::set(const CodePoints& members) {
  for (size_t i = 0; i < known_.size(); ++i) {
    if (known_[i].ranges() == members.ranges()) return static_cast<uint32_t>(i);
  }
  known_.push_back(members);
  program_.sets.emplace_back(members);
  return static_cast<uint32_t>(known_.size() - 1);
}

uint32_t Compiler::firsts(const Firsts& members) {
  program_.firsts.push_back(members);
  return static_cast<uint32_t>(program_.firsts.size() - 1);
}

void Compiler::choice(const Node& node) {
  std::vector<uint32_t> ends;
  for (size_t i = 0; i < node.children.size(); ++i) {
    const Node& child = node.children[i];
    if (i + 1 == node.children.size()) {
      add(child);
      break;
    }
    uint32_t split =
        put({Instruction::kSplit, false, 0, firsts(firsts_of(child).value_or(any())), 0, 0});
    add(child);
    ends.push_back(put({Instruction::kJump}));
    program_.code[split].a = here();
  }
  for (uint32_t end : ends) program_.code[end].a = here();
}

// Emits code that matches the body or nothing. again: it repeats.
void Compiler::optional(const Node& body, bool lazy, bool again) {
  if (lazy) {  // a lazy repeat tries the continuation before the body
    uint32_t over = put({Instruction::kSplit, false, 0, firsts(any()), 0, 0});
    uint32_t behind = put({Instruction::kJump});
    program_.code[over].a = here();
    add(body);
    if (again) put({Instruction::kJump, false, over, 0, 0, 0});
    program_.code[behind].a = here();
    return;
  }
  uint32_t split =
      put({Instruction::kSplit, false, 0, firsts(firsts_of(body).value_or(any())), 0, 0});
  add(body);
  if (again) put({Instruction::kJump, false, split, 0, 0, 0});
  program_.code[split].a = here();
}

void Compiler::repeat(const Node& node) {
  const Node& body = node.children[0];
  bool lazy = node.greed == Node::kLazy;
  if (body.kind == Node::kSet && !lazy) {
    bool kept = node.greed == Node::kPossessive;
    put({kept ? Instruction::kRunKept : Instruction::kRun, false, set(body.set), 0, node.least,
         node.most});
    return;
  }
  if (node.greed == Node::kPossessive) {
    Node greedy = node, atomic;
    greedy.greed = Node::kGreedy;
    atomic.kind = Node::kAtomic;
    atomic.children.push_back(std::move(greedy));
    return add(atomic);
  }
  for (uint32_t i = 0; i < node.least; ++i) add(body);
  if (node.most == kUnbounded) {
    if (extent(body).first == 0) {
      throw Error(WHERRY_INVALID_ARGUMENT,
                  "a pattern repeats without bound what may match without a character");
    }
    return optional(body, lazy, true);
  }
  // Nests the optional repetitions, because each depends on the previous one: x{0,2} is (x(x)?)?.
  std::vector<uint32_t> behind;
  for (uint32_t i = node.least; i < node.most; ++i) {
    if (lazy) {
      uint32_t over = put({Instruction::kSplit, false, 0, firsts(any()), 0, 0});
      behind.push_back(put({Instruction::kJump}));
      program_.code[over].a = here();
    } else {
      behind.push_back(
          put({Instruction::kSplit, false, 0, firsts(firsts_of(body).value_or(any())), 0, 0}));
    }
    add(body);
  }
  for (uint32_t at : behind) program_.code[at].a = here();
}

void Compiler::enclosed(const Node& node, Instruction::Op op) {
  uint32_t back = 0;
  if (node.kind == Node::kBehind) {
    auto [least, most] = extent(node.children[0]);
    if (least != most) {
      throw Error(WHERRY_INVALID_ARGUMENT, "a pattern looks behind for texts of several lengths");
    }
    back = least;
  }
  uint32_t at = put({op, node.negated, 0, back, 0, 0});
  add(node.children[0]);
  put({Instruction::kMatch});
  program_.code[at].a = here();
}

void Compiler::add(const Node& node) {
  switch (node.kind) {
    case Node::kSequence:
      for (const Node& child : node.children) add(child);
      return;
    case Node::kChoice:
      return choice(node);
    case Node::kSet:
      put({Instruction::kSet, false, set(node.set), 0, 0, 0});
      return;
    case Node::kRepeat:
      return repeat(node);
    case Node::kAtomic:
      return enclosed(node, Instruction::kAtomic);
    case Node::kAhead:
      return enclosed(node, Instruction::kAhead);
    case Node::kBehind:
      return enclosed(node, Instruction::kBehind);
    default:
      put({Instruction::kNode, node.negated, static_cast<uint32_t>(node.kind), 0, 0, 0});
      return;
  }
}

}  // namespace

Program::Program(const Node& node) {
  Compiler compiler(*this);
  compiler.add(node);
  compiler.put({Instruction::kMatch});
  begin = firsts_of(node).value_or(any());
}

}  // namespace wherry::text
