#include "app/grammar/schema/automaton.h"

#include <algorithm>

namespace wherry::app {

const CodePoints& text_characters() {
  static const CodePoints kAll = {{'\b', '\n'}, {'\f', '\r'}, {0x20, 0xD7FF}, {0xE000, 0x10FFFF}};
  return kAll;
}

CodePoints joined(CodePoints a, const CodePoints& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  CodePoints code_points;
  for (const auto& [low, high] : a) {
    if (!code_points.empty() && low <= code_points.back().second + 1) {
      code_points.back().second = std::max(code_points.back().second, high);
    } else {
      code_points.emplace_back(low, high);
    }
  }
  return code_points;
}

CodePoints shared(const CodePoints& a, const CodePoints& b) {
  CodePoints code_points;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const char32_t low = std::max(a[i].first, b[j].first);
    const char32_t high = std::min(a[i].second, b[j].second);
    if (low <= high) code_points.emplace_back(low, high);
    if (a[i].second < b[j].second) {
      ++i;
    } else {
      ++j;
    }
  }
  return code_points;
}

CodePoints others(const CodePoints& set) {
  CodePoints gaps;
  char32_t next = 0;
  for (const auto& [low, high] : set) {
    if (low > next) gaps.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= 0x10FFFF) gaps.emplace_back(next, 0x10FFFF);
  return shared(gaps, text_characters());
}

void Automaton::trim() {
  std::vector<std::vector<size_t>> sources(states.size());
  std::vector<size_t> open;
  std::vector<bool> ends(states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    for (const auto& edge : states[i].edges) sources[edge.second].push_back(i);
    if (states[i].ends) open.push_back(i);
    ends[i] = states[i].ends;
  }
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    for (const size_t source : sources[at]) {
      if (!ends[source]) open.push_back(source);
      ends[source] = true;
    }
  }
  if (states.empty() || !ends[0]) return states.clear();
  std::vector<size_t> places(states.size());
  size_t kept = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    if (ends[i]) places[i] = kept++;
  }
  std::vector<State> result;
  for (size_t i = 0; i < states.size(); ++i) {
    if (!ends[i]) continue;
    State state{states[i].ends, {}};
    for (auto& [set, to] : states[i].edges) {
      if (ends[to]) state.edges.emplace_back(std::move(set), places[to]);
    }
    result.push_back(std::move(state));
  }
  states = std::move(result);
}

}  // namespace wherry::app
