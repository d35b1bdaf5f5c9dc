#include "app/text/pattern/parser.h"

#include <utility>

#include "app/value/code_points.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

namespace {

constexpr int kDeepest = 100;

Node simple(Node::Kind kind, bool negated = false) {
  Node node;
  node.kind = kind;
  node.negated = negated;
  return node;
}

}  // namespace

Node parse_pattern(std::string_view source) { return PatternParser(source).parse(); }

void PatternParser::fail(const std::string& what) const {
  throw Error(WHERRY_INVALID_ARGUMENT,
              concat("the pattern ", source_, " has ", what, " at byte ", at_));
}

bool PatternParser::take(std::string_view text) {
  if (source_.substr(at_, text.size()) != text) return false;
  at_ += text.size();
  return true;
}

char32_t PatternParser::take_char() {
  if (!more()) fail("an end within a character class or an escape");
  return next_code_point(source_, at_);
}

Node PatternParser::parse() {
  Node node = choice();
  if (more()) fail("a ) without (");
  return node;
}

Node PatternParser::choice() {
  // The options are saved here, because they apply up to the group's end.
  bool any_case = any_case_, dot_is_all = dot_is_all_;
  if (++depth_ > kDeepest) fail("groups that nest too deep");
  Node node = simple(Node::kChoice);
  do node.children.push_back(sequence());
  while (take("|"));
  --depth_;
  any_case_ = any_case;
  dot_is_all_ = dot_is_all;
  if (node.children.size() > 1) return node;
  return Node(std::move(node.children[0]));
}

Node PatternParser::sequence() {
  Node node;
  while (more() && peek() != '|' && peek() != ')') node.children.push_back(repeated(atom()));
  return node;
}

std::optional<Node> PatternParser::bounds() {
  size_t begin = at_;
  auto number = [&](uint32_t otherwise) {
    uint32_t value = 0;
    bool any = false;
    for (; peek() >= '0' && peek() <= '9' && value < 100000; ++at_, any = true) {
      value = value * 10 + static_cast<uint32_t>(peek() - '0');
    }
    return any ? value : otherwise;
  };
  Node node = simple(Node::kRepeat);
  if (take("{")) {
    node.least = number(kUnbounded);
    node.most = take(",") ? number(kUnbounded) : node.least;
    if (take("}") && (node.least != kUnbounded || node.most != kUnbounded)) {
      if (node.least == kUnbounded) node.least = 0;
      if (node.most < node.least) fail("a repetition whose bounds are reversed");
      return node;
    }
  }
  at_ = begin;
  return std::nullopt;
}

Node PatternParser::repeated(Node node) {
  while (more()) {
    Node repeat = simple(Node::kRepeat);
    bool braces = false;
    if (take("*")) {
      repeat.most = kUnbounded;
    } else if (take("+")) {
      repeat.least = 1;
      repeat.most = kUnbounded;
    } else if (take("?")) {
      repeat.most = 1;
    } else if (auto match = bounds()) {
      repeat = std::move(*match);
      braces = true;
    } else {
      break;
    }
    if (node.kind != Node::kSet && node.kind != Node::kSequence && node.kind != Node::kChoice &&
        node.kind != Node::kRepeat && node.kind != Node::kAtomic) {
      fail("a repetition of an assertion");
    }
    if (take("?")) {
      if (braces && repeat.least == repeat.most) fail("{n}?");
      repeat.greed = Node::kLazy;
    } else if (!braces && take("+")) {
      repeat.greed = Node::kPossessive;
    }
    repeat.children.push_back(std::move(node));
    node = std::move(repeat);
  }
  return node;
}

Node PatternParser::of(CodePoints set) {
  Node node = simple(Node::kSet);
  node.set = any_case_ ? in_both_cases(std::move(set)) : std::move(set);
  return node;
}

Node PatternParser::atom() {
  if (take("(")) return group();
  if (take("[")) {
    Node node = simple(Node::kSet);
    node.set = bracketed();  // bracketed() applies the case option itself, before negation
    return node;
  }
  if (take("\\")) return escaped();
  if (take("^")) return simple(Node::kLineBegin);
  if (take("$")) return simple(Node::kLineEnd);
  if (take(".")) {
    Node node = simple(Node::kSet);
    node.set = dot_is_all_ ? ~CodePoints() : ~CodePoints::one('\n');
    return node;
  }
  if (peek() == '*' || peek() == '+' || peek() == '?') fail("a repetition of nothing");
  return of(CodePoints::one(take_char()));
}

Node PatternParser::enclosing(Node::Kind kind, bool negated) {
  Node node = simple(kind, negated);
  node.children.push_back(choice());
  return node;
}

Node PatternParser::group() {
  auto closed = [&](Node node) {
    if (!take(")")) fail("a ( without )");
    return node;
  };
  if (!take("?")) return closed(choice());
  if (take(":")) return closed(choice());
  if (take("=")) return closed(enclosing(Node::kAhead, false));
  if (take("!")) return closed(enclosing(Node::kAhead, true));
  if (take(">")) return closed(enclosing(Node::kAtomic, false));
  if (take("<=")) return closed(enclosing(Node::kBehind, false));
  if (take("<!")) return closed(enclosing(Node::kBehind, true));
  bool on = true, any_case = any_case_, dot_is_all = dot_is_all_;
  for (;;) {
    if (take("-")) {
      on = false;
    } else if (take("i")) {
      any_case = on;
    } else if (take("m")) {
      dot_is_all = on;
    } else {
      break;
    }
  }
  bool to_end = peek() == ')';  // true if the option applies to the end of its group
  if (!to_end && !take(":")) fail("a group of a kind that is not supported");
  std::swap(any_case, any_case_);
  std::swap(dot_is_all, dot_is_all_);
  if (to_end) {
    ++at_;
    Node node = choice();  // as in Oniguruma, a|(?i)b|c means a|(?i:b|c)
    return node;
  }
  Node node = closed(choice());
  any_case_ = any_case;
  dot_is_all_ = dot_is_all;
  return node;
}

Node PatternParser::escaped() {
  char32_t c = take_char();
  switch (c) {
    case 'A':
      return simple(Node::kTextBegin);
    case 'z':
      return simple(Node::kTextEnd);
    case 'Z':
      return simple(Node::kTextEndOrNewline);
    case 'b':
      return simple(Node::kWordBorder);
    case 'B':
      return simple(Node::kWordBorder, true);
    default:
      break;
  }
  if (auto set = class_escape(c)) {
    Node node = simple(Node::kSet);
    node.set = std::move(*set);
    return node;
  }
  return of(CodePoints::one(escaped_char(c)));
}

}  // namespace wherry::text
