// The variables by which a chat template gets tools.
#ifndef WHERRY_APP_TOOLS_TOOL_VARIABLES_H_
#define WHERRY_APP_TOOLS_TOOL_VARIABLES_H_

#include <utility>
#include <vector>

#include "app/template/chat_template.h"
#include "app/tools/families.h"

namespace wherry::app {

class ToolVariables {
 public:
  explicit ToolVariables(const jinja::ChatTemplate& chat_template);

  // Whether the template has no such variable.
  bool empty() const { return names_.empty(); }
  // Returns the variables of a chat with these tools, of OpenAI's shape.
  std::vector<std::pair<Value, Value>> of(const json::Values& tools) const;

 private:
  Texts names_;
  // Whether the template joins `functions` to a text, with or without tools, as Firefunction's.
  bool as_text_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_TOOL_VARIABLES_H_
