// Finds stop strings across token boundaries; the cost does not depend on their number.
//
// The algorithm is an Aho-Corasick automaton ("Efficient
// string matching", 1975), whose states are created when a text first reaches them. It works on
// bytes; texts that arrive in whole characters are emitted in whole characters.
#ifndef WHERRY_APP_TEXT_STOP_STRINGS_H_
#define WHERRY_APP_TEXT_STOP_STRINGS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

// The Aho-Corasick automaton of one request; its choices share it, but only one thread may use it
// at a time.
class StopAutomaton {
 public:
  // keeps: whether a text ends with its stop string rather than before it. Ignores empty strings.
  explicit StopAutomaton(std::vector<std::string> stops, bool keeps = false);
  ~StopAutomaton();

  struct State;
  State* start() { return start_; }
  bool keeps() const { return keeps_; }
  // Returns the state of the longest matching suffix after one more byte.
  State* after(State* state, char byte);

 private:
  State* longer(const State& state, char byte);

  std::vector<std::string> stops_;  // stop strings in sorted order
  const bool keeps_;
  std::vector<std::unique_ptr<State>> states_;
  State* start_;
};

// Passes a text through until a stop string is complete, and holds back text that may begin a stop
// string. The stop string that is complete first wins (the longest of those that end at the same
// position), so the result does not depend on how the text is split.
class StopStrings {
 public:
  explicit StopStrings(std::shared_ptr<StopAutomaton> automaton);

  // Returns text that certainly belongs to the output; "" after a stop string was found.
  std::string push(std::string_view text);
  // Returns the text that was held back, at the end of the output.
  std::string flush();

  bool stopped() const { return match_.has_value(); }  // once true, further text is ignored
  const std::optional<std::string>& match() const { return match_; }

 private:
  std::shared_ptr<StopAutomaton> automaton_;
  StopAutomaton::State* state_;
  std::string kept_;
  std::optional<std::string> match_;
};

}  // namespace wherry

#endif  // WHERRY_APP_TEXT_STOP_STRINGS_H_
