// A conversation that goes on when it has become longer than the model's context.
#ifndef WHERRY_ENGINE_TOOLS_LITE_CONVERSATION_H_
#define WHERRY_ENGINE_TOOLS_LITE_CONVERSATION_H_

#include <optional>
#include <string>
#include <vector>

#include "tools/lite/model.h"

namespace wherry::lite {

// All messages are kept; the oldest are not sent any more when room is needed.
class Conversation {
 public:
  // system: is always sent; "": none. max_tokens: of an answer; 0: as many as fit, and a quarter of
  // the context is kept free for it.
  Conversation(const Model& model, std::string system, int64_t max_tokens);

  Value messages() const;  // that are sent
  // Adds what the person says; the number of older messages that are not sent any more. Throws
  // std::runtime_error, and adds nothing: the text alone is too long, or the template refuses it.
  size_t ask(const std::string& text);
  void answered(const std::string& text);
  // Takes the last question back, with its answer if there is one; nothing: there is none.
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

#endif  // WHERRY_ENGINE_TOOLS_LITE_CONVERSATION_H_
