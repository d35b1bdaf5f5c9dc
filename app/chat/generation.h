// One running request: turns the core's events for all its choices into JSON.
#ifndef WHERRY_APP_CHAT_GENERATION_H_
#define WHERRY_APP_CHAT_GENERATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/plan.h"
#include "app/chat/reply.h"
#include "app/chat/response.h"

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
