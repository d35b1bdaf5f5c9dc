// Builds the constraint of an output: tool calls, the request's own grammar, or either; reasoning
// stays free.
#ifndef WHERRY_APP_CHAT_ENFORCEMENT_H_
#define WHERRY_APP_CHAT_ENFORCEMENT_H_

#include <optional>

#include "app/chat/asked_tools.h"
#include "app/grammar/constraint.h"
#include "app/grammar/rules.h"
#include "app/text/tokenizer.h"
#include "app/tools/families.h"
#include "app/tools/thoughts.h"

namespace wherry::app {

class Enforcement {
 public:
  // family: the format of calls; null if the model writes none. thoughts: marks of reasoning that
  // may come first; opened: whether the prompt already contains the opening mark. All must outlive
  // this object.
  Enforcement(const Family* family, const std::optional<Thoughts>& thoughts, bool opened,
              const Tokenizer& tokenizer);

  // All three functions throw RequestError if a strict tool's parameters cannot be enforced.

  // Returns the constraint of an output that consists of calls of these tools.
  Constraint calls(const AskedTools& asked);
  // Returns the constraint of a text in which the arguments of calls follow the tools' parameters.
  Constraint text_or_calls(const AskedTools& asked);
  // Returns the constraint of an output that, after its reasoning, conforms to `base` or consists
  // of calls.
  Constraint held(const Constraint& base, const AskedTools& asked);

 private:
  CallRules rules_of(const AskedTools& asked);
  Constraint made(const std::string& body, const std::string& param);

  const Family* family_;
  const std::optional<Thoughts>& thoughts_;
  const bool opened_;
  Rules rules_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_ENFORCEMENT_H_
