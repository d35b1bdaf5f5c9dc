// One request under way: all its choices, from the core's events to JSON.
#ifndef WHERRY_ENGINE_APP_CHAT_GENERATION_H_
#define WHERRY_ENGINE_APP_CHAT_GENERATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/plan.h"
#include "app/chat/reply.h"

namespace wherry::app {

// Takes one JSON object; last: none follows.
using Listener = std::function<void(const std::string& json, bool last)>;

// Used by one thread.
class Generation {
 public:
  Generation(Plan plan, const Tokenizer& tokenizer, Listener listener);

  const Plan& plan() const { return plan_; }
  void open();  // what a stream begins with
  // Takes an event of a choice. Gives the choices that have ended without the core's knowledge to
  // `abort`. Throws Failed.
  void push(size_t choice, const wherry_event& event, const std::string& error);
  void flush();  // gives out what the events since the last call have added
  bool done() const { return open_ == 0; }
  bool must_abort(size_t choice) const { return choices_[choice].must_abort(); }
  bool ended(size_t choice) const { return choices_[choice].ended(); }
  void fail(const std::string& error_json);  // the last thing that is given out

 private:
  Totals totals() const;
  void close();

  const Plan plan_;
  const Listener listener_;
  const Reply reply_;
  std::vector<Choice> choices_;
  std::vector<Delta> deltas_;  // of each choice: since the last flush, or, not streamed, all
  size_t open_;
  bool over_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_GENERATION_H_
