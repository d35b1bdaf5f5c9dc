// Keeps the messages of a chat at the terminal.
#ifndef WHERRY_APP_LITE_CONVERSATION_H_
#define WHERRY_APP_LITE_CONVERSATION_H_

#include <optional>
#include <string>
#include <vector>

#include "app/value/value.h"

namespace wherry::lite {

using json::Value;

// Stores all messages of a conversation, also those that the context has no room for.
class Conversation {
 public:
  // system: a message that is always sent; "" for none.
  explicit Conversation(std::string system) : system_(std::move(system)) {}

  Value messages() const;  // returns the messages to send
  void ask(const std::string& text) { turns_.push_back({"user", text}); }
  void answered(const std::string& text) { turns_.push_back({"assistant", text}); }
  // Removes the last user message and its response; returns the message, or nothing if there is
  // none.
  std::optional<std::string> withdraw();
  size_t size() const { return turns_.size(); }

 private:
  struct Turn {
    const char* role;
    std::string text;
  };

  const std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_CONVERSATION_H_
