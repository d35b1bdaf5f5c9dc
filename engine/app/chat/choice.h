// From the events of one choice to pieces of its text and reasoning.
#ifndef WHERRY_ENGINE_APP_CHAT_CHOICE_H_
#define WHERRY_ENGINE_APP_CHAT_CHOICE_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat/plan.h"
#include "app/text/detokenizer.h"
#include "app/text/stop_strings.h"
#include "wherry.h"

namespace wherry::app {

// A token with its log probability.
struct LoggedToken {
  std::string piece;
  double logprob;
  std::vector<std::pair<std::string, double>> top;
  size_t offset;  // characters of the output before it
};

// What some events add to a choice.
struct Delta {
  size_t index = 0;
  std::vector<Part> parts;
  std::vector<LoggedToken> logprobs;
  std::string finish;  // "stop", "length", "tool_calls", or "" while it goes on

  std::string text() const;       // what the user reads of it
  std::string reasoning() const;  // what the model wrote to itself
  void add(Delta more);
};

// The core gave a request up.
struct Failed {
  std::string message, code;
  bool request;  // the request's own fault
};

class Choice {
 public:
  Choice(size_t index, const Plan& plan, const Tokenizer& tokenizer,
         std::shared_ptr<StopAutomaton> stops);

  // What this event adds; nothing once the choice has ended. error: of an event that has failed.
  // Throws Failed.
  Delta push(const wherry_event& event, const std::string& error);

  size_t index() const { return index_; }
  bool ended() const { return !finish_.empty(); }
  bool must_abort() const { return must_abort_; }  // ended, which the core does not know

  int64_t sampled = 0, cached = 0, drafted = 0, accepted = 0, reasoning = 0;
  double queue = 0, prefill = 0, decode = 0;  // seconds

 private:
  std::string accept(const wherry_event& event, const std::string& error);
  std::string piece(const wherry_event& event);
  void count(bool thinks, bool anything);
  std::vector<Part> parsed(const wherry_event& event, const std::string& error);
  void end_with_calls(const std::vector<Part>& parts);
  std::vector<LoggedToken> released();

  size_t index_;
  const Plan& plan_;
  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  std::unique_ptr<OutputParser> parser_;
  std::deque<std::pair<size_t, LoggedToken>> logged_;  // (where its text ends, token)
  size_t decoded_ = 0, given_ = 0;  // characters: out of the detokenizer, to the reader
  int64_t undecided_ = 0;           // tokens of which nothing was given out
  std::string finish_;
  bool must_abort_ = false, called_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_CHOICE_H_
