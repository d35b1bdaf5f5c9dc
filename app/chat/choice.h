// Turns the events of one choice into pieces of text, reasoning and tool calls.
#ifndef WHERRY_APP_CHAT_CHOICE_H_
#define WHERRY_APP_CHAT_CHOICE_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat/plan.h"
#include "app/text/detokenizer.h"
#include "app/text/stop_strings.h"
#include "app/tools/custom_calls.h"
#include "wherry.h"

namespace wherry::app {

// A token with its log probability.
struct LoggedToken {
  std::string piece;
  std::optional<float> logprob;  // nothing for the first token of an echoed prompt
  std::vector<std::pair<std::string, float>> top;
  size_t offset;  // position of the token in the output, in characters
};

// A token of the prompt for vLLM's `prompt_logprobs`; the first one has no probability.
struct PromptToken {
  int32_t token;
  float logprob;
  std::vector<std::pair<int32_t, float>> top;
};

// The output that some events add to a choice.
struct Delta {
  size_t index = 0;
  std::vector<Part> parts;
  std::vector<LoggedToken> logprobs;
  std::vector<PromptToken> prompt;  // prompt tokens from the second one on, if requested
  std::optional<std::string> stop;  // the stop string that ended the choice
  std::string finish;  // "stop", "length" or "tool_calls"; "" while the choice is running

  std::string text() const;       // returns the text for the user
  std::string reasoning() const;  // returns the model's reasoning
  bool empty() const { return parts.empty() && logprobs.empty() && finish.empty(); }
  void add(Delta more);
};

// The exception for a request that the core failed.
struct Failed {
  std::string message, code;
  bool request;  // whether the request itself was invalid
};

class Choice {
 public:
  Choice(size_t index, const Plan& plan, const Tokenizer& tokenizer,
         std::shared_ptr<StopAutomaton> stops);

  // Returns the output that this event adds; an empty delta once the choice has ended. error: the
  // message of a failed event. Throws Failed.
  Delta push(const wherry_event& event, const std::string& error);

  size_t index() const { return index_; }
  bool ended() const { return !finish_.empty(); }
  const std::string& finish() const { return finish_; }
  // Whether the choice has ended without the core's knowledge, so that the core must abort it.
  bool must_abort() const { return must_abort_; }

  int64_t sampled = 0, cached = 0, drafted = 0, accepted = 0, reasoning = 0;
  double queue = 0, prefill = 0, decode = 0;  // seconds

 private:
  std::string accept(const wherry_event& event, const std::string& error);
  std::string echoed(const wherry_event& event);
  std::string output_text(const wherry_event& event);
  std::string piece(int32_t token, const wherry_event* event);
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
  // Pairs of the position where a token's text ends, and the token.
  std::deque<std::pair<size_t, LoggedToken>> logged_;
  std::vector<PromptToken> prompt_;  // prompt tokens that have not been sent yet
  size_t echoed_ = 0;                // number of the prompt's tokens that are echoed
  std::optional<CustomCalls> custom_;
  size_t decoded_ = 0, given_ = 0;  // numbers of characters decoded, and sent to the client
  int64_t undecided_ = 0;           // number of tokens whose text has not been sent yet
  std::string finish_;
  bool must_abort_ = false, called_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CHOICE_H_
