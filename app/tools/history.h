// Adapts a conversation to a chat template that refuses a part of it, or leaves it out.
//
// Templates are written for the conversations of their model's training: one system message at the
// beginning, turns that alternate, one call at a time. Clients send others. What a template lacks
// is found once, by rendering examples with marked texts; messages with such a part are then
// rewritten so that each text reaches the model.
#ifndef WHERRY_APP_TOOLS_HISTORY_H_
#define WHERRY_APP_TOOLS_HISTORY_H_

#include <functional>
#include <string>
#include <vector>

#include "app/template/chat_template.h"
#include "app/tools/families.h"
#include "app/tools/tool_variables.h"

namespace wherry::app {

using json::Values;

// Messages for a template, and the names of the steps that changed them; see docs/server.md.
struct Adapted {
  Values messages;
  Texts changes;
};

class History {
 public:
  // The references must outlive the object. takes_text: whether the template needs the arguments of
  // calls as JSON text.
  History(const jinja::ChatTemplate& chat_template, const Family& family,
          const ToolVariables& tool_variables, bool takes_text);

  // Whether `adapted` may change anything.
  bool needed() const;
  // Rewrites what the template is known to refuse or to leave out.
  Adapted adapted(Values messages) const;
  // Rewrites adapted messages that the template refuses, step by step, until it takes them. Returns
  // no messages if it takes none. The arguments are those of ChatTemplate::render.
  Adapted retried(Adapted refused, bool add_generation_prompt, const Value& variables,
                  const std::function<bool()>& gone = nullptr) const;

 private:
  Values stepped(size_t step, const Values& messages) const;
  bool shows(const Values& messages, const Texts& texts) const;
  bool lacks(size_t step) const;

  const jinja::ChatTemplate& template_;
  const Family& family_;
  const ToolVariables& tool_variables_;
  const bool takes_text_;
  bool needs_tools_ = false;  // whether the template fails without tools
  bool drops_text_ = false;   // whether the text of a turn with calls is lost in any form
  std::vector<bool> needed_;  // for each step, whether the template needs it
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_HISTORY_H_
