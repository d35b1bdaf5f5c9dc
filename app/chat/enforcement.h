// Writes the grammar of an output: tool calls, the request's own constraint, or either; reasoning
// stays free.
#ifndef WHERRY_APP_CHAT_ENFORCEMENT_H_
#define WHERRY_APP_CHAT_ENFORCEMENT_H_

#include <optional>
#include <string>

#include "app/grammar/rules.h"
#include "app/tools/families.h"
#include "app/tools/thoughts.h"

namespace wherry::app {

// Returns the texts of a family and of reasoning that may be special tokens.
Texts special_names(const Family* family, const std::optional<Thoughts>& thoughts);

class Enforcement {
 public:
  // family: the format of calls; null if the model writes none. thoughts: marks of reasoning that
  // may come first; opened: whether the prompt already contains the opening mark. rules: gets the
  // grammar's rules. All must outlive this object.
  Enforcement(const Family* family, const std::optional<Thoughts>& thoughts, bool opened,
              Rules& rules)
      : family_(family), thoughts_(thoughts), opened_(opened), rules_(rules) {}

  // Whether an output is more than the request's own constraint, even without tools.
  bool has_frame() const;
  // Each returns the expression of the output. several: whether there may be several calls.
  //
  // An output that consists of calls of these tools.
  std::string calls(const CallRules& tools, bool several) const;
  // A text in which the arguments of calls follow the tools' parameters.
  std::string text_or_calls(const CallRules& tools, bool several) const;
  // An output that, after its reasoning, conforms to the expression `base` or, if there are tools,
  // consists of calls.
  std::string base_or_calls(const std::string& base, const CallRules& tools, bool several) const;

 private:
  std::string after_reasoning(const std::string& body) const;

  const Family* family_;
  const std::optional<Thoughts>& thoughts_;
  const bool opened_;
  Rules& rules_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_ENFORCEMENT_H_
