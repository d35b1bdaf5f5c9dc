#include "app/grammar/schema/expression.h"

#include <algorithm>
#include <string>

#include "app/value/code_points.h"

namespace wherry::app {

namespace {

using Id = Texts::Id;

constexpr size_t kLongestPattern = 4000;  // bytes
constexpr int kDeepest = 60;              // upper bound on the depth of nested groups
constexpr int32_t kMostTimes = 100'000;   // upper bound on the count of one repetition

const CodePoints kDigits = {{'0', '9'}};
const CodePoints kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodePoints kSpace = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                           {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                           {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
// Non-ASCII characters that are not digits, letters or blanks in any regex dialect.
const CodePoints kNoDigit = {
    {0, '/'}, {':', 0x65F}, {0x2010, 0x2027}, {0x3001, 0xA4CF}, {0xAC00, 0xD7A3}};
const CodePoints kNoWord = {{0, '/'},    {':', '@'},       {'[', '^'},       {'`', '`'},
                            {'{', 0x7F}, {0x2010, 0x2027}, {0x20A0, 0x20BF}, {0x3001, 0x3002}};
const CodePoints kNotSpace = joined(kSpace, {{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}});
const CodePoints kNoDot = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

struct Piece {
  enum Kind { kTexts, kGroup, kAhead, kNotAhead, kBegin, kEnd } kind = kTexts;
  Id texts = 0;
  std::vector<std::vector<Piece>> parts;  // alternatives of a group or a lookahead
  int32_t from = 1, to = 1;
};
using Sequence = std::vector<Piece>;

[[noreturn]] void refuse(const std::string& what) { throw NotEnforced("", what); }

class Parser {
 public:
  Parser(Texts& texts, std::string_view pattern) : texts_(texts), left_(pattern) {}

  std::vector<Sequence> all() {
    std::vector<Sequence> sequences = alternatives();
    if (!left_.empty()) refuse("an unmatched )");
    return sequences;
  }

 private:
  bool taken(std::string_view text) {
    if (left_.substr(0, text.size()) != text) return false;
    left_.remove_prefix(text.size());
    return true;
  }

  char32_t next() {
    if (left_.empty()) refuse("an expression that ends early");
    size_t at = 0;
    const char32_t code = unicode::next_code_point(left_, at);
    left_.remove_prefix(at);
    return code;
  }

  std::vector<Sequence> alternatives() {
    if (++depth_ > kDeepest) refuse("groups that lie too deep");
    std::vector<Sequence> sequences(1);
    while (!left_.empty() && left_[0] != ')') {
      if (taken("|")) {
        sequences.emplace_back();
      } else {
        sequences.back().push_back(quantified(piece()));
      }
    }
    --depth_;
    return sequences;
  }

  Piece piece() {
    if (taken("^")) return of(Piece::kBegin);
    if (taken("$")) return of(Piece::kEnd);
    if (taken("(")) return group();
    if (taken(".")) return of(others(kNoDot));
    if (taken("[")) return of(char_class());
    if (taken("\\")) return escape();
    if (left_[0] == '*' || left_[0] == '+' || left_[0] == '?' || left_[0] == '{') {
      refuse("a repetition of nothing");
    }
    const char32_t code = next();
    return of({{code, code}});
  }

  static Piece of(Piece::Kind kind) {
    Piece piece;
    piece.kind = kind;
    return piece;
  }
  Piece of(CodePoints set) {
    Piece piece = of(Piece::kTexts);
    piece.texts = texts_.chars(std::move(set));
    return piece;
  }

  Piece group() {
    Piece piece = of(Piece::kGroup);
    if (taken("?=")) {
      piece.kind = Piece::kAhead;
    } else if (taken("?!")) {
      piece.kind = Piece::kNotAhead;
    } else if (taken("?<=") || taken("?<!")) {
      refuse("a look behind");
    } else if (taken("?<")) {
      left_.remove_prefix(std::min(left_.size(), left_.find('>')));
      if (!taken(">")) refuse("a group without a name");
    } else if (!taken("?:") && !left_.empty() && left_[0] == '?') {
      refuse("a group of an unknown kind");
    }
    piece.parts = alternatives();
    if (!taken(")")) refuse("a group that does not end");
    return piece;
  }

  Piece escape() {
    const char letter = left_.empty() ? '\0' : left_[0];
    if (letter == 'b' || letter == 'B') refuse("\\b");
    if (letter == 'k' || (letter >= '1' && letter <= '9')) refuse("a reference to a group");
    return of(escaped(false));
  }

  // Parses an escape after its backslash. exact: returns the set of ECMA-262, which complements
  // need.
  CodePoints escaped(bool exact) {
    const char32_t code = next();
    switch (code) {
      case 'd':
        return kDigits;
      case 'D':
        return exact ? others(kDigits) : kNoDigit;
      case 'w':
        return kWord;
      case 'W':
        return exact ? others(kWord) : kNoWord;
      case 's':
        return kSpace;
      case 'S':
        return others(exact ? kSpace : kNotSpace);
      case 'p':
      case 'P':
        refuse("\\p");
      case 'c':
        refuse("\\c");
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 't':
        return {{'\t', '\t'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case '0':
        return {{0, 0}};
      case 'x':
        return hex(2);
      case 'u':
        return taken("{") ? hex(0) : hex(4);
      default:
        return {{code, code}};
    }
  }

  CodePoints hex(size_t digits) {
    char32_t code = 0;
    for (size_t n = 0; digits == 0 || n < digits; ++n) {
      const char32_t c = next();
      if (digits == 0 && c == '}' && n > 0) break;
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if ((!letter && (c < '0' || c > '9')) || code > 0xFFFF * 16)
        refuse("a character by its number");
      code = code * 16 + (letter ? (c | 0x20) - 'a' + 10 : c - '0');
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) refuse("half of a surrogate pair");
    return {{code, code}};
  }

  CodePoints char_class() {
    const bool negated = taken("^");
    CodePoints code_points;
    for (const char* all : {"\\s\\S]", "\\S\\s]", "\\d\\D]", "\\D\\d]", "\\w\\W]", "\\W\\w]"}) {
      if (!negated && taken(all)) return text_characters();
    }
    while (!taken("]")) {
      CodePoints one = member(negated);
      const bool range = left_.size() > 1 && left_[0] == '-' && left_[1] != ']';
      if (range) {
        left_.remove_prefix(1);
        const CodePoints last = member(negated);
        const bool single = one.size() == 1 && last.size() == 1 && one[0].first == one[0].second &&
                            last[0].first == last[0].second;
        if (!single || one[0].first > last[0].first) refuse("a range of a class");
        one[0].second = last[0].first;
      }
      code_points = joined(std::move(code_points), one);
    }
    return negated ? others(code_points) : code_points;
  }

  CodePoints member(bool negated) {
    if (!taken("\\")) {
      const char32_t code = next();
      return {{code, code}};
    }
    if (taken("b")) return {{'\b', '\b'}};
    return escaped(negated);
  }

  Piece quantified(Piece piece) {
    int32_t from = 0, to = Texts::kUnbounded;
    if (taken("+")) {
      from = 1;
    } else if (taken("?")) {
      to = 1;
    } else if (taken("{")) {
      from = number();
      to = taken(",") ? left_.substr(0, 1) == "}" ? Texts::kUnbounded : number() : from;
      if (!taken("}") || (to != Texts::kUnbounded && from > to)) refuse("a repetition");
    } else if (!taken("*")) {
      return piece;
    }
    taken("?");  // a lazy quantifier matches the same set of texts
    if (piece.kind != Piece::kTexts && piece.kind != Piece::kGroup)
      refuse("a repetition of a place");
    piece.from = from;
    piece.to = to;
    return piece;
  }

  int32_t number() {
    int32_t result = 0;
    if (left_.empty() || left_[0] < '0' || left_[0] > '9') refuse("a repetition");
    while (!left_.empty() && left_[0] >= '0' && left_[0] <= '9') {
      result = std::min(result * 10 + (left_[0] - '0'), kMostTimes + 1);
      left_.remove_prefix(1);
    }
    if (result > kMostTimes) refuse("a repetition of more than " + std::to_string(kMostTimes));
    return result;
  }

  Texts& texts_;
  std::string_view left_;
  int depth_ = 0;
};

// Builds the sets of texts for sequences. `rest` is the set for the remaining text, up to its end.
class Sets {
 public:
  explicit Sets(Texts& texts) : texts_(texts) {}

  Id match_rule(const std::vector<Sequence>& alternatives) {
    std::vector<Id> result;
    for (const Sequence& one : alternatives) {
      const bool anchored = begins(one);
      const Id set = of(one, 0, texts_.all(), anchored);
      result.push_back(anchored ? set : texts_.concat(texts_.all(), set));
    }
    return texts_.either(std::move(result));
  }

 private:
  static bool begins(const Sequence& sequence) {
    for (const Piece& piece : sequence) {
      if (piece.kind == Piece::kBegin) return true;
      if (piece.kind == Piece::kGroup && piece.from == 1 && piece.to == 1) {
        return std::all_of(piece.parts.begin(), piece.parts.end(), begins);
      }
      if (piece.kind != Piece::kAhead && piece.kind != Piece::kNotAhead) return false;
    }
    return false;
  }

  // Whether a group's set of texts is independent of its context.
  static bool simple(const Piece& piece) {
    if (piece.kind == Piece::kTexts) return true;
    return piece.kind == Piece::kGroup &&
           std::all_of(piece.parts.begin(), piece.parts.end(), [](const Sequence& one) {
             return std::all_of(one.begin(), one.end(), simple);
           });
  }

  Id any_of(const Piece& piece, Id rest, bool start) {
    std::vector<Id> result;
    for (const Sequence& one : piece.parts) result.push_back(of(one, 0, rest, start));
    return texts_.either(std::move(result));
  }

  Id of(const Sequence& sequence, size_t at, Id rest, bool start) {
    if (at == sequence.size()) return rest;
    const Piece& piece = sequence[at];
    if (simple(piece)) {
      const Id set =
          piece.kind == Piece::kTexts ? piece.texts : any_of(piece, texts_.empty(), false);
      return texts_.concat(texts_.repeat(set, piece.from, piece.to),
                           of(sequence, at + 1, rest, false));
    }
    const bool stays = piece.kind == Piece::kBegin || piece.kind == Piece::kAhead ||
                       piece.kind == Piece::kNotAhead;
    const Id behind = of(sequence, at + 1, rest, start && stays);
    switch (piece.kind) {
      case Piece::kBegin:
        if (!start) refuse("a ^ amid it");
        return behind;
      case Piece::kEnd:
        return texts_.both({behind, texts_.empty()});
      case Piece::kAhead:
        return texts_.both({behind, any_of(piece, texts_.all(), start)});
      case Piece::kNotAhead:
        return texts_.both({behind, texts_.without(any_of(piece, texts_.all(), start))});
      default:
        break;
    }
    if (piece.to != 1) refuse("a repetition of what looks ahead, or of ^ or $");
    const Id once = any_of(piece, behind, start);
    return piece.from == 0 ? texts_.either({behind, once}) : once;
  }

  Texts& texts_;
};

}  // namespace

Id expression(Texts& texts, std::string_view pattern) {
  if (pattern.size() > kLongestPattern) refuse("an expression that is too long");
  return Sets(texts).match_rule(Parser(texts, pattern).all());
}

}  // namespace wherry::app
