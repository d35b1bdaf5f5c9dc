#include "app/grammar/schema/texts.h"

#include <algorithm>

#include "app/value/code_points.h"

namespace wherry::app {

namespace {

constexpr size_t kMostStates = 2000;
constexpr int32_t kLongest = 1 << 20;  // upper bound on counted lengths in characters
// Upper bound on the bytes of a literal text, because the set functions are recursive.
constexpr size_t kLongestText = 4000;

int32_t sum(int32_t a, int32_t b) {
  return a == Texts::kUnbounded || b == Texts::kUnbounded ? Texts::kUnbounded
                                                          : std::min(a + b, kLongest);
}

int32_t product(int32_t a, int32_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == Texts::kUnbounded || b == Texts::kUnbounded) return Texts::kUnbounded;
  return static_cast<int32_t>(std::min<int64_t>(int64_t{a} * b, kLongest));
}

int32_t less(int32_t a, int32_t by) { return a == Texts::kUnbounded ? a : std::max(a - by, 0); }

}  // namespace

Texts::Texts(Steps& steps) : steps_(steps) {
  none_ = add_node({Kind::kChars, false, true, 0, 0, 0, 0, {}, {}});
  any_char_ = chars(text_characters());
  empty_ = add_node({Kind::kRepeat, true, true, 0, 0, 0, 0, {none_}, {}});
  all_ = repeat(any_char_, 0, kUnbounded);
}

Texts::Id Texts::add_node(Node node) {
  steps_.take(1 + node.parts.size() + node.chars.size());
  std::vector<int32_t> key = {static_cast<int32_t>(node.kind), node.from, node.to};
  key.insert(key.end(), node.parts.begin(), node.parts.end());
  const auto [known, is_new] =
      known_.emplace(Key(std::move(key), node.chars), static_cast<Id>(nodes_.size()));
  if (is_new) nodes_.push_back(std::move(node));
  return known->second;
}

Texts::Id Texts::chars(CodePoints set) {
  return add_node({Kind::kChars, false, true, 1, 1, 0, 0, {}, shared(set, text_characters())});
}

Texts::Id Texts::literal(std::string_view text) {
  std::vector<Id> all;
  if (text.size() > kLongestText) throw NotEnforced("", "a text in it is too long");
  for (size_t at = 0; at < text.size();) {
    const char32_t code = unicode::next_code_point(text, at);
    all.push_back(chars({{code, code}}));
  }
  Id result = empty_;
  for (; !all.empty(); all.pop_back()) result = concat(all.back(), result);
  return result;
}

Texts::Id Texts::concat(Id a, Id b) {
  if (a == none_ || b == none_) return none_;
  if (a == empty_) return b;
  if (b == empty_) return a;
  if (node(a).kind == Kind::kConcat) {
    const std::vector<Id> parts = node(a).parts;
    return concat(parts[0], concat(parts[1], b));
  }
  const Node &x = node(a), &y = node(b);
  return add_node({Kind::kConcat,
                   x.nullable && y.nullable,
                   x.plain && y.plain,
                   std::min(x.least + y.least, kLongest),
                   sum(x.most, y.most),
                   0,
                   0,
                   {a, b},
                   {}});
}

// Flattens nested parts, sorts and deduplicates them, and merges character sets.
std::vector<Texts::Id> Texts::flat(Kind kind, std::vector<Id> parts, Id neutral) const {
  std::vector<Id> result;
  for (const Id part : parts) {
    if (part == neutral) continue;
    if (node(part).kind == kind) {
      result.insert(result.end(), node(part).parts.begin(), node(part).parts.end());
    } else {
      result.push_back(part);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Texts::Id Texts::either(std::vector<Id> parts) {
  parts = flat(Kind::kEither, std::move(parts), none_);
  CodePoints set;
  std::vector<Id> rest;
  for (const Id part : parts) {
    if (part == all_) return all_;
    if (node(part).kind == Kind::kChars) {
      set = joined(std::move(set), node(part).chars);
    } else {
      rest.push_back(part);
    }
  }
  if (!set.empty()) rest.push_back(chars(std::move(set)));
  std::sort(rest.begin(), rest.end());
  if (rest.size() > 1) {  // the remaining parts contain the empty text anyway
    const bool nullable = std::any_of(
        rest.begin(), rest.end(), [&](Id part) { return part != empty_ && node(part).nullable; });
    if (nullable) rest.erase(std::remove(rest.begin(), rest.end(), empty_), rest.end());
  }
  if (rest.empty()) return none_;
  if (rest.size() == 1) return rest[0];
  Node all{Kind::kEither, false, true, kLongest, 0, 0, 0, rest, {}};
  for (const Id part : rest) {
    const Node& one = node(part);
    all.nullable = all.nullable || one.nullable;
    all.plain = all.plain && one.plain;
    all.least = std::min(all.least, one.least);
    const bool open = all.most == kUnbounded || one.most == kUnbounded;
    all.most = open ? kUnbounded : std::max(all.most, one.most);
  }
  return add_node(std::move(all));
}

Texts::Id Texts::both(std::vector<Id> parts) {
  parts = flat(Kind::kBoth, std::move(parts), all_);
  int32_t from = 0, to = kUnbounded;  // bounds of the length in characters
  std::vector<Id> rest;
  for (const Id part : parts) {
    const Node& one = node(part);
    if (part == none_) return none_;
    if (one.kind == Kind::kRepeat && one.parts[0] == any_char_) {
      from = std::max(from, one.from);
      if (one.to != kUnbounded) to = to == kUnbounded ? one.to : std::min(to, one.to);
    } else {
      rest.push_back(part);
    }
  }
  if (to != kUnbounded && from > to) return none_;
  const bool bounded = from > 0 || to != kUnbounded;
  if (rest.empty()) return of_length(from, to);
  if (rest.size() == 1) return bounded ? shortened(rest[0], from, to) : rest[0];
  if (bounded) rest.push_back(of_length(from, to));
  std::sort(rest.begin(), rest.end());
  Node all{Kind::kBoth, true, false, from, to, 0, 0, rest, {}};
  for (const Id part : rest) {
    const Node& one = node(part);
    all.nullable = all.nullable && one.nullable;
    all.least = std::max(all.least, one.least);
    if (one.most != kUnbounded) {
      all.most = all.most == kUnbounded ? one.most : std::min(all.most, one.most);
    }
  }
  if (all.most != kUnbounded && all.least > all.most) return none_;
  return add_node(std::move(all));
}

// Restricts a set to texts of `from` to `to` characters, with counted repetitions if the set has
// any.
Texts::Id Texts::shortened(Id part, int32_t from, int32_t to) {
  const Node one = node(part);
  const bool fits = to == kUnbounded || (one.most != kUnbounded && one.most <= to);
  if (one.least >= from && fits) return part;
  if ((to != kUnbounded && one.least > to) || (one.most != kUnbounded && one.most < from)) {
    return none_;
  }
  if (one.kind == Kind::kRepeat && node(one.parts[0]).kind == Kind::kChars) {
    const int32_t most = one.to == kUnbounded ? to
                         : to == kUnbounded   ? one.to
                                              : std::min(one.to, to);
    return repeat(one.parts[0], std::max(one.from, from), most);
  }
  if (one.kind == Kind::kConcat) {
    const Node head = node(one.parts[0]), tail = node(one.parts[1]);
    if (head.least == head.most) {
      return concat(one.parts[0],
                    both({one.parts[1], of_length(less(from, head.least), less(to, head.least))}));
    }
    if (tail.least == tail.most) {
      return concat(both({one.parts[0], of_length(less(from, tail.least), less(to, tail.least))}),
                    one.parts[1]);
    }
  }
  std::vector<Id> parts = {part, of_length(from, to)};
  std::sort(parts.begin(), parts.end());
  const int32_t most = to == kUnbounded         ? one.most
                       : one.most == kUnbounded ? to
                                                : std::min(one.most, to);
  return add_node({Kind::kBoth,
                   one.nullable && from == 0,
                   false,
                   std::max(one.least, from),
                   most,
                   0,
                   0,
                   std::move(parts),
                   {}});
}

Texts::Id Texts::without(Id part) {
  if (part == none_) return all_;
  if (part == all_) return none_;
  if (node(part).kind == Kind::kNot) return node(part).parts[0];
  return add_node({Kind::kNot, !node(part).nullable, false, 0, kUnbounded, 0, 0, {part}, {}});
}

Texts::Id Texts::repeat(Id part, int32_t from, int32_t to) {
  if (to == 0 || part == empty_) return empty_;
  if (part == none_) return from == 0 ? empty_ : none_;
  if (from == 1 && to == 1) return part;
  const Node one = node(part);
  if (one.kind == Kind::kRepeat && one.from == 0 && one.to == kUnbounded) return part;
  return add_node({Kind::kRepeat,
                   from == 0 || one.nullable,
                   one.plain,
                   product(one.least, from),
                   product(one.most, to),
                   from,
                   to,
                   {part},
                   {}});
}

Texts::Id Texts::derivative(Id id, char32_t at) {
  const auto known = derivatives_.find({id, at});
  if (known != derivatives_.end()) return known->second;
  steps_.take(4);
  const Node one = node(id);
  Id result = none_;
  std::vector<Id> parts;
  switch (one.kind) {
    case Kind::kChars:
      for (const auto& [low, high] : one.chars) {
        if (low <= at && at <= high) result = empty_;
      }
      break;
    case Kind::kConcat:
      result = concat(derivative(one.parts[0], at), one.parts[1]);
      if (node(one.parts[0]).nullable) result = either({result, derivative(one.parts[1], at)});
      break;
    case Kind::kRepeat:
      result = concat(derivative(one.parts[0], at),
                      repeat(one.parts[0], std::max(one.from - 1, 0), less(one.to, 1)));
      break;
    case Kind::kNot:
      result = without(derivative(one.parts[0], at));
      break;
    default:
      for (const Id part : one.parts) parts.push_back(derivative(part, at));
      result = one.kind == Kind::kEither ? either(std::move(parts)) : both(std::move(parts));
  }
  derivatives_.emplace(std::pair(id, at), result);
  return result;
}

void Texts::cuts(Id id, std::vector<char32_t>& into) {
  const Node& one = node(id);
  steps_.take(1 + one.chars.size());
  for (const auto& [low, high] : one.chars) {
    into.push_back(low);
    into.push_back(high + 1);
  }
  const bool head = one.kind == Kind::kConcat && !node(one.parts[0]).nullable;
  for (size_t i = 0; i < (head ? 1 : one.parts.size()); ++i) cuts(one.parts[i], into);
}

bool Texts::has(Id id, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const char32_t code = unicode::next_code_point(text, at);
    if (shared({{code, code}}, text_characters()).empty()) return false;
    id = derivative(id, code);
  }
  return node(id).nullable;
}

Automaton Texts::automaton(Id id) {
  Automaton result;
  std::map<Id, size_t> places = {{id, 0}};
  std::vector<Id> order = {id};
  for (size_t i = 0; i < order.size(); ++i) {
    std::vector<char32_t> at;
    for (const auto& [low, high] : text_characters()) {
      at.push_back(low);
      at.push_back(high + 1);
    }
    cuts(order[i], at);
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    std::map<Id, CodePoints> edges;
    for (size_t k = 0; k + 1 < at.size(); ++k) {
      if (shared({{at[k], at[k]}}, text_characters()).empty()) continue;
      CodePoints& set = edges[derivative(order[i], at[k])];
      set = joined(std::move(set), {{at[k], at[k + 1] - 1}});
    }
    edges.erase(none_);
    result.states.push_back({node(order[i]).nullable, {}});
    for (auto& [to, set] : edges) {
      const auto [place, is_new] = places.emplace(to, order.size());
      if (is_new) order.push_back(to);
      result.states[i].edges.emplace_back(std::move(set), place->second);
    }
    if (order.size() > kMostStates) {
      throw NotEnforced("", "what its texts are held to has too many states");
    }
  }
  result.trim();
  return result;
}

}  // namespace wherry::app
