// One running request: turns the core's events for all its choices into JSON.
#ifndef WHERRY_APP_CHAT_GENERATION_H_
#define WHERRY_APP_CHAT_GENERATION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/plan.h"
#include "app/chat/response.h"
#include "app/chat/writer.h"

namespace wherry::app {

// A request that generates text.
class Generation : public Response {
 public:
  Generation(Plan plan, const Tokenizer& tokenizer, Listener listener);

  const Plan& plan() const { return plan_; }
  void open() override;
  void push(size_t choice, const wherry_event& event, const std::string& error) override;
  void flush() override;
  bool done() const override { return open_ == 0; }
  bool must_abort(size_t choice) const override { return choices_[choice].must_abort(); }
  bool ended(size_t choice) const override { return choices_[choice].ended(); }
  void fail(const std::string& error_json) override;
  Totals totals() const override;
  std::string about() const override;

 private:
  using Clock = std::chrono::steady_clock;
  void close();

  const Plan plan_;
  const Listener listener_;
  const std::unique_ptr<const Writer> writer_;
  std::vector<Choice> choices_;
  std::vector<Delta> deltas_;  // unsent output of each choice
  size_t open_;
  bool over_ = false;
  // Guards the counts of choices, which `totals` reads; recursive, because a host may ask for them
  // within a service that `push` uses.
  mutable std::recursive_mutex mutex_;
  std::optional<Clock::time_point> first_, last_;  // of the first and the last event
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_GENERATION_H_
