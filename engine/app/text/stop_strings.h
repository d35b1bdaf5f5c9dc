// Stop strings, found across the borders of tokens, in time that does not grow with their number.
//
// As runtime_py/text/stop_strings.py: the automaton of Aho and Corasick ("Efficient string
// matching", 1975), whose states are made when a text first reaches them. It works on bytes; texts
// that come in whole characters leave in whole characters.
#ifndef WHERRY_ENGINE_APP_TEXT_STOP_STRINGS_H_
#define WHERRY_ENGINE_APP_TEXT_STOP_STRINGS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

// The stop strings of a request; its choices share it, one thread at a time.
class StopAutomaton {
 public:
  explicit StopAutomaton(std::vector<std::string> stops);  // empty ones never stop
  ~StopAutomaton();

  struct State;
  State* start() { return start_; }
  // The state for the longest beginning at the end of the text, one byte later.
  State* after(State* state, char byte);

 private:
  State* longer(const State& state, char byte);

  std::vector<std::string> stops_;  // sorted
  std::vector<std::unique_ptr<State>> states_;
  State* start_;
};

// Passes a text through until a stop string is complete; what may be the beginning of one is held
// back. Of several the one that is complete first counts (the longest of those that end at the same
// place), so the result does not depend on how the text was cut.
class StopStrings {
 public:
  explicit StopStrings(std::shared_ptr<StopAutomaton> automaton);

  // Text that is certain to belong to the output; "" once stopped.
  std::string push(std::string_view text);
  // What was held back, at the end of the text.
  std::string flush();

  bool stopped() const { return found_.has_value(); }  // what follows is not wanted
  const std::optional<std::string>& found() const { return found_; }

 private:
  std::shared_ptr<StopAutomaton> automaton_;
  StopAutomaton::State* state_;
  std::string held_;
  std::optional<std::string> found_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_APP_TEXT_STOP_STRINGS_H_
