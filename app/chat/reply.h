// Writes responses as JSON in OpenAI's shapes: chat completions, completions and their chunks.
#ifndef WHERRY_APP_CHAT_REPLY_H_
#define WHERRY_APP_CHAT_REPLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/plan.h"
#include "app/chat/writer.h"

namespace wherry::app {

class Reply : public Writer {
 public:
  // The arguments must outlive the object.
  Reply(const Plan& plan, const Tokenizer& tokenizer);

  std::vector<std::string> opening() const override;  // returns the chunks with each choice's role
  std::string chunk(const Delta& delta) const override;
  std::string closing(const Totals& totals) const override;
  std::string complete(const std::vector<Delta>& choices, const Totals& totals) const override;

 private:
  // choices: JSON of each choice. first: whether nothing of the response precedes it.
  // of_prompt: JSON of the prompt's log probabilities; "" if there are none.
  std::string answer(const std::vector<std::string>& choices, const Totals* totals, bool streamed,
                     bool first, const std::string& of_prompt = "") const;
  std::string chat_choice(const Delta& delta) const;
  std::string chat_chunk(const Delta& delta) const;
  std::string completion_choice(const Delta& delta) const;
  std::string prompt_logprobs(const std::vector<PromptToken>& tokens) const;

  const Plan& plan_;
  const Tokenizer& tokenizer_;
  std::string id_;
  int64_t created_;  // Unix time in seconds
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_REPLY_H_
