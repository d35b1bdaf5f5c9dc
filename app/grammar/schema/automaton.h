// Deterministic finite automata over characters, and character sets.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_AUTOMATON_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_AUTOMATON_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace wherry::app {

// A set of characters as sorted, disjoint, inclusive ranges.
using CodePoints = std::vector<std::pair<char32_t, char32_t>>;

// Returns the characters that a JSON string may contain here: all except half
// surrogate pairs and the control characters that have no short escape (such as
// \n).
const CodePoints& text_characters();
CodePoints joined(CodePoints a, const CodePoints& b);
CodePoints shared(const CodePoints& a, const CodePoints& b);
CodePoints others(const CodePoints& set);  // returns the complement within text_characters()

struct Automaton {
  struct State {
    bool ends = false;
    // Sets of characters with their target states.
    std::vector<std::pair<CodePoints, size_t>> edges;
  };
  // States, of which the first is the start state; empty if no text matches.
  std::vector<State> states;

  // Removes states from which no accepting state is reachable.
  void trim();
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_AUTOMATON_H_
