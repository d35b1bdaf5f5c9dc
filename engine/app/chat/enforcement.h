// What holds an output to calls of tools, to a constraint, or to either; reasoning stays free. As
// runtime_py/tools/enforce.py.
#ifndef WHERRY_ENGINE_APP_CHAT_ENFORCEMENT_H_
#define WHERRY_ENGINE_APP_CHAT_ENFORCEMENT_H_

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
  // family: how calls are written; null: none are looked for. thoughts: marks of the reasoning that
  // may come first; opened: whether the prompt has opened it. All have to outlive this.
  Enforcement(const Family* family, const std::optional<Thoughts>& thoughts, bool opened,
              const Tokenizer& tokenizer);

  // These throw RequestError: a strict tool's parameters cannot be enforced.
  // The output is calls of these tools.
  Constraint calls(const AskedTools& asked);
  // It is text, in which calls are held to the tools' parameters.
  Constraint text_or_calls(const AskedTools& asked);
  // After its reasoning it is what `base` says, or calls of tools, if there are any.
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

#endif  // WHERRY_ENGINE_APP_CHAT_ENFORCEMENT_H_
