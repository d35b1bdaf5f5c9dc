// Deterministic finite automata over characters, and character sets.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_AUTOMATON_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_AUTOMATON_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace wherry::app {

// Sorted, disjoint, inclusive ranges.
using CodePoints = std::vector<std::pair<char32_t, char32_t>>;

// Characters that a JSON string may contain here: all except half surrogate pairs and the control
// characters that have no short escape such as
// .
const CodePoints& text_characters();
CodePoints joined(CodePoints a, const CodePoints& b);
CodePoints shared(const CodePoints& a, const CodePoints& b);
CodePoints others(const CodePoints& set);  // the complement, within text_characters()

struct Automaton {
  struct State {
    bool ends = false;
    std::vector<std::pair<CodePoints, size_t>> edges;  // with target states
  };
  std::vector<State> states;  // the first is the start state; empty: no text matches

  // Removes states from which no accepting state is reachable.
  void trim();
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_AUTOMATON_H_
