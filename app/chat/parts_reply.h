// Writes responses in parts, in the order in which the model wrote them, for hosts that translate
// them to other protocols.
#ifndef WHERRY_APP_CHAT_PARTS_REPLY_H_
#define WHERRY_APP_CHAT_PARTS_REPLY_H_

#include <string>
#include <vector>

#include "app/chat/plan.h"
#include "app/chat/writer.h"

namespace wherry::app {

// A chunk is {"index", "parts", "finish", "stop", "logprobs"}: the choice's new parts; why the
// choice ended, or null; the stop string that ended it, or null; OpenAI's list of tokens, if log
// probabilities were requested. A part is one of
//
//   ["text" | "reasoning" | "arguments", TEXT]
//   ["call", ID, NAME, CUSTOM]
//   ["end", COMPLETE]
//
// The last chunk is {"usage", "timings"}. A response without streaming is {"choices": [CHUNK, ...],
// "usage", "timings"}.
class PartsReply : public Writer {
 public:
  // plan: must outlive the object.
  explicit PartsReply(const Plan& plan) : plan_(plan) {}

  std::vector<std::string> opening() const override { return {}; }
  std::string chunk(const Delta& delta) const override;
  std::string closing(const Totals& totals) const override;
  std::string complete(const std::vector<Delta>& choices, const Totals& totals) const override;

 private:
  const Plan& plan_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_PARTS_REPLY_H_
