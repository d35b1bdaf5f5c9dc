// Derives from a model's chat template how the model calls tools and whether it writes reasoning.
#ifndef WHERRY_APP_TOOLS_CHAT_FORMAT_H_
#define WHERRY_APP_TOOLS_CHAT_FORMAT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/template/chat_template.h"
#include "app/tools/families.h"
#include "app/tools/history.h"
#include "app/tools/thoughts.h"
#include "app/tools/tool_variables.h"

namespace wherry::app {

// How one model calls tools, and what its chat template supports.
class ChatFormat {
 public:
  // tool_format: the name of the family; "" detects it from the template. If the template describes
  // tools but does not show the format of calls, the model's tokens decide: `known` returns whether
  // a text is one of them. Throws Error if the family is unknown.
  ChatFormat(std::unique_ptr<const jinja::ChatTemplate> chat_template,
             const std::string& tool_format, const std::function<bool(const std::string&)>& known);

  // The history refers to the template.
  ChatFormat(const ChatFormat&) = delete;
  ChatFormat& operator=(const ChatFormat&) = delete;

  const jinja::ChatTemplate& chat_template() const { return *template_; }
  const Family& family() const { return *family_; }
  const std::optional<Thoughts>& thoughts() const { return thoughts_; }
  // Whether the template describes tools to the model; otherwise a system message must do so.
  bool native() const { return !tool_variables_.empty(); }
  const ToolVariables& tool_variables() const { return tool_variables_; }
  bool knows(const std::string& variable) const;  // whether the template reads a variable
  // Whether the template expects the arguments of earlier calls as JSON text rather than objects.
  bool takes_text() const { return takes_text_; }
  // Whether the template prints the calls of earlier messages.
  bool takes_calls() const { return takes_calls_; }
  // Whether the template prints system messages.
  bool takes_system() const { return takes_system_; }
  // Returns the format of the model's template for chats with or without tools.
  const ChatFormat& suited(bool tools) const { return tools && for_tools_ ? *for_tools_ : *this; }
  void set_for_tools(std::unique_ptr<ChatFormat> chat_format) {
    for_tools_ = std::move(chat_format);
  }
  // How conversations are adapted to the template; null if they are not.
  const History* history() const { return history_ ? &*history_ : nullptr; }
  // Leaves conversations as they are, also those that the template refuses.
  void adapt_nothing() {
    history_.reset();
    if (for_tools_) for_tools_->history_.reset();
  }

 private:
  const Family& recognized(const std::function<bool(const std::string&)>& known) const;
  std::string tried(const Value& messages) const;
  void ask();

  std::unique_ptr<const jinja::ChatTemplate> template_;
  const ToolVariables tool_variables_;
  const Family* family_;
  std::optional<Thoughts> thoughts_;
  bool takes_text_ = false, takes_calls_ = false, takes_system_ = false;
  std::optional<History> history_;
  std::unique_ptr<ChatFormat> for_tools_;  // null if this format serves all chats
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_CHAT_FORMAT_H_
