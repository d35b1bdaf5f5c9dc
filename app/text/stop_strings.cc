#include "app/text/stop_strings.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace wherry {

// A state of the automaton: a prefix of stop strings, i.e. the first `depth` bytes that stops[low,
// high) share.
struct StopAutomaton::State {
  size_t low, high, depth;
  std::unordered_map<char, State*> next;
  State* fail = nullptr;  // state of the longest proper suffix that is also a prefix
  size_t ends = 0;        // length of the longest stop string that is a suffix of this prefix
};

StopAutomaton::StopAutomaton(std::vector<std::string> stops, bool keeps)
    : stops_(std::move(stops)), keeps_(keeps) {
  std::sort(stops_.begin(), stops_.end());
  stops_.erase(std::unique(stops_.begin(), stops_.end()), stops_.end());
  if (!stops_.empty() && stops_[0].empty()) stops_.erase(stops_.begin());
  states_.emplace_back(new State{0, stops_.size(), 0, {}, nullptr, 0});
  start_ = states_[0].get();
}

StopAutomaton::~StopAutomaton() = default;

StopAutomaton::State* StopAutomaton::longer(const State& state, char byte) {
  auto begin = stops_.begin() + static_cast<std::ptrdiff_t>(state.low);
  auto end = stops_.begin() + static_cast<std::ptrdiff_t>(state.high);
  // Returns a sort key that puts the end of a string before any byte.
  auto key = [&](const std::string& stop) {
    return stop.size() > state.depth ? static_cast<unsigned char>(stop[state.depth]) : -1;
  };
  int code = static_cast<unsigned char>(byte);
  auto low = std::lower_bound(
      begin, end, code, [&](const std::string& stop, int value) { return key(stop) < value; });
  auto high = std::upper_bound(
      low, end, code, [&](int value, const std::string& stop) { return value < key(stop); });
  if (low == high) return nullptr;
  states_.emplace_back(new State{static_cast<size_t>(low - stops_.begin()),
                                 static_cast<size_t>(high - stops_.begin()),
                                 state.depth + 1,
                                 {},
                                 nullptr,
                                 0});
  return states_.back().get();
}

StopAutomaton::State* StopAutomaton::after(State* state, char byte) {
  std::vector<State*> states;
  State* at = state;
  State* match = start_;
  for (; at; at = at->fail) {
    auto it = at->next.find(byte);
    if (it != at->next.end()) {
      match = it->second;
      break;
    }
    if (State* created = longer(*at, byte)) {
      at->next.emplace(byte, created);
      states.push_back(created);
    }
  }
  // States of shorter prefixes come first, because `ends` may come from the suffix's state.
  for (auto each = states.rbegin(); each != states.rend(); ++each) {
    (*each)->fail = match;
    bool complete = stops_[(*each)->low].size() == (*each)->depth;
    (*each)->ends = complete ? (*each)->depth : match->ends;
    match = *each;
  }
  return match;
}

StopStrings::StopStrings(std::shared_ptr<StopAutomaton> automaton)
    : automaton_(std::move(automaton)), state_(automaton_->start()) {}

std::string StopStrings::push(std::string_view text) {
  if (stopped()) return "";
  for (size_t i = 0; i < text.size(); ++i) {
    state_ = automaton_->after(state_, text[i]);
    if (state_->ends == 0) continue;
    std::string all = std::exchange(kept_, "");
    all += text.substr(0, i + 1);
    match_ = all.substr(all.size() - state_->ends);
    if (!automaton_->keeps()) all.resize(all.size() - state_->ends);
    return all;
  }
  std::string all = std::exchange(kept_, "");
  all += text;
  kept_ = all.substr(all.size() - state_->depth);
  all.resize(all.size() - state_->depth);
  return all;
}

std::string StopStrings::flush() { return std::exchange(kept_, ""); }

}  // namespace wherry
