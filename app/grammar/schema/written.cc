#include "app/grammar/schema/written.h"

#include <algorithm>
#include <cstdio>

namespace wherry::app {

namespace {

// Characters of the longest inline expression; longer ones become rules.
constexpr size_t kLongestExpression = 60;
constexpr int32_t kBlock = 32;  // characters per block of a counted repetition
const CodePoints kEscaped = {{'\b', '\n'}, {'\f', '\r'}, {'"', '"'}, {'\\', '\\'}};

std::string character(char32_t code) {
  const bool plain =
      (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
  if (plain) return std::string(1, static_cast<char>(code));
  char result[16];
  std::snprintf(result, sizeof result, "\\U%08x", static_cast<unsigned>(code));
  return result;
}

std::string char_class(const CodePoints& set) {
  std::string result = "[";
  for (const auto& [low, high] : set) {
    result += character(low);
    if (high > low) result += (high > low + 1 ? "-" : "") + character(high);
  }
  return result + "]";
}

}  // namespace

Written operator+(Written a, const Written& b) {
  if (!a.text.empty() && !b.text.empty()) a.text += ' ';
  a.text += b.text;
  a.needs.insert(a.needs.end(), b.needs.begin(), b.needs.end());
  return a;
}

size_t RuleSet::add() {
  steps_.take();
  rules_.emplace_back();
  return rules_.size() - 1;
}

void RuleSet::either(size_t rule, Written alternative) {
  steps_.take(1 + alternative.text.size() / 16);
  rules_[rule].push_back(std::move(alternative));
}

Written RuleSet::ref(size_t rule) const { return {"g" + std::to_string(rule), {rule}}; }

// Finds the rules that terminate, starting with those that refer to no other rules.
RuleSet::Reached RuleSet::reached() const {
  std::vector<std::vector<std::pair<size_t, size_t>>> users(rules_.size());
  std::vector<std::vector<size_t>> missing(rules_.size());
  std::vector<bool> ends(rules_.size());
  std::vector<size_t> open;
  const auto end = [&](size_t rule) {
    if (!ends[rule]) open.push_back(rule);
    ends[rule] = true;
  };
  for (size_t i = 0; i < rules_.size(); ++i) {
    for (size_t k = 0; k < rules_[i].size(); ++k) {
      missing[i].push_back(rules_[i][k].needs.size());
      for (const size_t need : rules_[i][k].needs) users[need].emplace_back(i, k);
      if (rules_[i][k].needs.empty()) end(i);
    }
  }
  while (!open.empty()) {
    const size_t rule = open.back();
    open.pop_back();
    for (const auto& [user, k] : users[rule]) {
      if (--missing[user][k] == 0) end(user);
    }
  }
  return {std::move(ends), std::move(missing)};
}

std::string RuleSet::text(size_t root) {
  const auto [ends, missing] = reached();
  if (!ends[root]) return "";
  std::string result = "root ::= " + ref(root).text + "\n";
  std::vector<bool> written(rules_.size());
  std::vector<size_t> open = {root};
  written[root] = true;
  for (size_t at = 0; at < open.size(); ++at) {
    const size_t rule = open[at];
    std::string body;
    for (size_t k = 0; k < rules_[rule].size(); ++k) {
      if (missing[rule][k] != 0) continue;
      const Written& one = rules_[rule][k];
      body += (body.empty() ? "" : " | ") + one.text;
      for (const size_t need : one.needs) {
        if (!written[need]) open.push_back(need);
        written[need] = true;
      }
    }
    result += ref(rule).text + " ::= " + body + "\n";
  }
  return result;
}

void WrittenTexts::either(size_t rule, const CodePoints& set, const Written& rest) {
  const CodePoints plain = as_ == As::kPlain ? set : shared(set, others(kEscaped));
  const CodePoints special = as_ == As::kPlain ? CodePoints() : shared(set, kEscaped);
  std::string letters;
  for (const auto& [low, high] : special) {
    for (char32_t code = low; code <= high; ++code) {
      letters += code == '"'    ? "\\\""
                 : code == '\\' ? "\\\\"
                                : std::string(1, "btn?fr"[code - '\b']);
    }
  }
  if (!plain.empty()) rules_.either(rule, Written{char_class(plain), {}} + rest);
  if (!letters.empty()) rules_.either(rule, Written{"\"\\\\\" [" + letters + "]", {}} + rest);
}

Written WrittenTexts::chars(const CodePoints& set, Written rest) {
  if (as_ == As::kPlain || shared(set, kEscaped).empty()) {
    return Written{char_class(set), {}} + rest;
  }
  const size_t rule = rules_.add();
  either(rule, set, named(std::move(rest)));
  return rules_.ref(rule);
}

Written WrittenTexts::named(Written rest) {
  if (rest.text.size() <= kLongestExpression) return rest;
  const size_t rule = rules_.add();
  rules_.either(rule, std::move(rest));
  return rules_.ref(rule);
}

template <typename Make>
Written WrittenTexts::known(const char* what, Texts::Id set, int32_t count, const Written& rest,
                            Make make) {
  const auto [known, is_new] = known_.emplace(std::tuple(what, set, count, rest.text), 0);
  if (!is_new) return rules_.ref(known->second);
  const size_t rule = known->second = rules_.add();
  make(rule);
  return rules_.ref(rule);
}

Written WrittenTexts::of(Texts::Id set, Written rest) {
  if (set == texts_.none()) return rules_.ref(rules_.add());
  if (set == texts_.empty()) return rest;
  const Texts::Node node = texts_.node(set);
  if (node.kind == Texts::Kind::kChars) return chars(node.chars, std::move(rest));
  if (node.kind == Texts::Kind::kConcat) {
    return of(node.parts[0], of(node.parts[1], std::move(rest)));
  }
  rest = named(std::move(rest));
  const bool counted = node.kind == Texts::Kind::kRepeat && !texts_.node(node.parts[0]).nullable;
  if (node.plain && counted) return repeated(node, std::move(rest));
  return known("", set, 0, rest, [&](size_t rule) {
    if (node.plain && node.kind == Texts::Kind::kEither) {
      for (const Texts::Id part : node.parts) rules_.either(rule, of(part, rest));
    } else {
      rules_.either(rule, written(texts_.automaton(set), rules_, rest,
                                  [this](size_t state, const CodePoints& set, const Written& next) {
                                    either(state, set, next);
                                  }));
    }
  });
}

Written WrittenTexts::repeated(const Texts::Node& node, Written rest) {
  const Texts::Id part = node.parts[0];
  rest = node.to == Texts::kUnbounded ? any_times(part, std::move(rest))
                                      : at_most(part, node.to - node.from, std::move(rest));
  return times(part, node.from, std::move(rest));
}

Written WrittenTexts::any_times(Texts::Id part, Written rest) {
  const Texts::Node node = texts_.node(part);
  const bool chars = node.kind == Texts::Kind::kChars;
  const CodePoints escaped = as_ == As::kPlain ? CodePoints() : shared(node.chars, kEscaped);
  const CodePoints plain = escaped.empty() ? node.chars : shared(node.chars, others(kEscaped));
  const Written many = {chars && !plain.empty() ? char_class(plain) + "*" : "", {}};
  if (chars && escaped.empty()) return many + rest;
  return known("*", part, 0, rest, [&](size_t rule) {
    rules_.either(rule, many + rest);
    rules_.either(rule, many + of(chars ? texts_.chars(escaped) : part, rules_.ref(rule)));
  });
}

// Writes counted repetitions. All counts share a few block rules, because xgrammar compiles a
// vocabulary mask for each rule.
Written WrittenTexts::times(Texts::Id part, int32_t count, Written rest) {
  if (count == 0) return rest;
  if (count < 2 * kBlock) {
    for (; count > 0; --count) rest = named(of(part, std::move(rest)));
    return rest;
  }
  const Written block = known("block", part, kBlock, {}, [&](size_t rule) {
    rules_.either(rule, times(part, kBlock, {"\"\"", {}}));
  });
  rest = times(part, count % kBlock, std::move(rest));
  for (int32_t n = count / kBlock; n > 0; --n) rest = named(block + rest);
  return rest;
}

Written WrittenTexts::at_most(Texts::Id part, int32_t count, Written rest) {
  if (count == 0) return rest;
  if (count >= 2 * kBlock) return blocks(part, count / kBlock, count % kBlock, std::move(rest));
  return known("?", part, count, rest, [&](size_t rule) {
    rules_.either(rule, rest);
    const Written next = at_most(part, count - 1, rest);
    const Texts::Node node = texts_.node(part);
    if (node.kind == Texts::Kind::kChars) return either(rule, node.chars, next);
    rules_.either(rule, of(part, next));
  });
}

// Writes whole blocks, then a shorter one; the last block may be followed by up to `others`
// characters.
Written WrittenTexts::blocks(Texts::Id part, int32_t count, int32_t others, Written rest) {
  Written result = at_most(part, others, rest);
  const Written end = at_most(part, kBlock - 1, rest);
  const Written block = known("block", part, kBlock, {}, [&](size_t rule) {
    rules_.either(rule, times(part, kBlock, {"\"\"", {}}));
  });
  for (int32_t n = 0; n < count; ++n) {
    const size_t rule = rules_.add();
    rules_.either(rule, end);
    rules_.either(rule, block + result);
    result = rules_.ref(rule);
  }
  return result;
}

}  // namespace wherry::app
