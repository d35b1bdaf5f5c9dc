// Sets of texts: regular expressions with intersection and complement.
//
// The implementation uses Brzozowski, "Derivatives of regular expressions" (1964). Equal
// expressions share one node, so an expression has few distinct derivatives; these are the states
// of its automaton.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_TEXTS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_TEXTS_H_

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "app/grammar/schema/automaton.h"
#include "app/grammar/schema/steps.h"

namespace wherry::app {

class Texts {
 public:
  using Id = int32_t;
  enum class Kind : uint8_t { kChars, kConcat, kEither, kBoth, kNot, kRepeat };
  struct Node {
    Kind kind;
    bool nullable;          // whether the set contains the empty text
    bool plain;             // whether the expression has no intersection or complement
    int32_t least, most;    // length of the set's texts in characters; most may be kUnbounded
    int32_t from, to;       // counts for kRepeat; `to` may be kUnbounded
    std::vector<Id> parts;  // subexpressions; kConcat has two
    CodePoints chars;       // characters for kChars
  };
  static constexpr int32_t kUnbounded = -1;

  explicit Texts(Steps& steps);

  Id none() const { return none_; }    // returns the empty set
  Id empty() const { return empty_; }  // returns the set that contains only ""
  Id all() const { return all_; }
  Id chars(CodePoints set);
  Id literal(std::string_view text);
  Id concat(Id a, Id b);
  Id either(std::vector<Id> parts);
  Id both(std::vector<Id> parts);
  Id without(Id part);  // returns the complement of the set
  Id repeat(Id part, int32_t from, int32_t to);
  Id of_length(int32_t from, int32_t to) { return repeat(any_char_, from, to); }

  const Node& node(Id id) const { return nodes_[static_cast<size_t>(id)]; }
  bool has(Id id, std::string_view text);
  // Returns the automaton of a set. Throws NotEnforced if there are too many states.
  Automaton automaton(Id id);

 private:
  using Key = std::pair<std::vector<int32_t>, CodePoints>;
  Id add_node(Node node);
  std::vector<Id> flat(Kind kind, std::vector<Id> parts, Id neutral) const;
  Id shortened(Id part, int32_t from, int32_t to);
  Id derivative(Id id, char32_t at);
  // Collects the starts of the character ranges within which the set's derivative is constant.
  void cuts(Id id, std::vector<char32_t>& into);

  Steps& steps_;
  std::vector<Node> nodes_;
  std::map<Key, Id> known_;
  std::map<std::pair<Id, char32_t>, Id> derivatives_;
  Id none_, empty_, any_char_, all_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_TEXTS_H_
