// Keeps a conversation that can grow longer than the model's context.
#ifndef WHERRY_APP_LITE_CONVERSATION_H_
#define WHERRY_APP_LITE_CONVERSATION_H_

#include <optional>
#include <string>
#include <vector>

#include "app/lite/model.h"

namespace wherry::lite {

// Stores all messages of a conversation, but stops sending the oldest when the context is full.
class Conversation {
 public:
  // system: a message that is always sent; "" for none. max_tokens: the limit of a response; 0
  // allows as many as fit, with a quarter of the context reserved for the response.
  Conversation(const Model& model, std::string system, int64_t max_tokens);

  Value messages() const;  // returns the messages to send
  // Adds a user message; returns the number of older messages that are no longer sent. Throws
  // std::runtime_error, and adds nothing, if the text alone is too long or the template rejects it.
  size_t ask(const std::string& text);
  void answered(const std::string& text);
  // Removes the last user message and its response; returns the message, or nothing if there is
  // none.
  std::optional<std::string> withdraw();
  size_t size() const { return turns_.size(); }

 private:
  struct Turn {
    const char* role;
    std::string text;
  };
  bool fits() const;

  const Model& model_;
  const std::string system_;
  const int64_t max_tokens_;
  std::vector<Turn> turns_;
  size_t sent_from_ = 0;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_CONVERSATION_H_
