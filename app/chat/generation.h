// One running request: turns the core's events for all its choices into JSON.
#ifndef WHERRY_APP_CHAT_GENERATION_H_
#define WHERRY_APP_CHAT_GENERATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/plan.h"
#include "app/chat/reply.h"

namespace wherry::app {

// Callback that receives one JSON object; last: no further object follows.
using Listener = std::function<void(const std::string& json, bool last)>;

// The state of one running request; not thread-safe.
class Generation {
 public:
  Generation(Plan plan, const Tokenizer& tokenizer, Listener listener);

  const Plan& plan() const { return plan_; }
  void open();  // sends the first chunks of a stream
  // Handles an event of a choice. Adds to `abort` the choices that have ended without the core's
  // knowledge. Throws Failed.
  void push(size_t choice, const wherry_event& event, const std::string& error);
  void flush();  // sends the output that was added since the last call
  bool done() const { return open_ == 0; }
  bool must_abort(size_t choice) const { return choices_[choice].must_abort(); }
  bool ended(size_t choice) const { return choices_[choice].ended(); }
  void fail(const std::string& error_json);  // sends the error as the last JSON object

 private:
  Totals totals() const;
  void close();

  const Plan plan_;
  const Listener listener_;
  const Reply reply_;
  std::vector<Choice> choices_;
  std::vector<Delta> deltas_;  // unsent output of each choice
  size_t open_;
  bool over_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_GENERATION_H_
