// Writes responses as JSON in OpenAI's shapes: chat completions, completions and their chunks.
#ifndef WHERRY_APP_CHAT_REPLY_H_
#define WHERRY_APP_CHAT_REPLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/plan.h"

namespace wherry::app {

// Sums of token counts and times over all choices of a request.
struct Totals {
  int64_t prompt = 0, sampled = 0, cached = 0, drafted = 0, accepted = 0, reasoning = 0;
  double queue = 0, prefill = 0, decode = 0;  // seconds, the maximum over all choices
};

class Reply {
 public:
  explicit Reply(const Plan& plan);

  std::vector<std::string> opening() const;  // returns the chunks with each choice's role
  std::string chunk(const Delta& delta) const;
  std::string closing(const Totals& totals) const;  // returns the chunk with the usage
  std::string whole(const std::vector<Delta>& choices, const Totals& totals) const;

 private:
  // first: whether nothing of the response precedes it
  Value answer(Values choices, const Totals* totals, bool streamed, bool first) const;
  Value chat_choice(const Delta& delta) const;
  Value chat_chunk(const Delta& delta) const;
  Value completion_choice(const Delta& delta) const;

  const Plan& plan_;
  std::string id_;
  int64_t created_;  // Unix time in seconds
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_REPLY_H_
