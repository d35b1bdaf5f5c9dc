// Derives from a model's chat template how the model calls tools and whether it writes reasoning.
#ifndef WHERRY_APP_TOOLS_DIALECT_H_
#define WHERRY_APP_TOOLS_DIALECT_H_

#include <functional>
#include <optional>
#include <string>

#include "app/template/chat_template.h"
#include "app/tools/families.h"
#include "app/tools/thoughts.h"

namespace wherry::app {

class Dialect {
 public:
  // tool_format: the family's name; "": detected. known: whether a text is a token of the model. If
  // a template prints tools but does not show the format of calls, the tokens that begin calls
  // decide. Throws Error: unknown family.
  Dialect(jinja::ChatTemplate chat_template, const std::string& tool_format,
          const std::function<bool(const std::string&)>& known);

  const jinja::ChatTemplate& chat_template() const { return template_; }
  const Family& family() const { return *family_; }
  const std::optional<Thoughts>& thoughts() const { return thoughts_; }
  // Whether the template describes tools to the model; otherwise the conversation has to.
  bool native() const { return !tool_variables_.empty(); }
  const Texts& tool_variables() const { return tool_variables_; }  // read by the template
  bool knows(const std::string& variable) const;                   // whether the template reads it
  // Whether the template expects the arguments of earlier calls as JSON text rather than objects.
  bool takes_text() const { return takes_text_; }
  bool takes_calls() const { return takes_calls_; }    // the template prints earlier calls
  bool takes_system() const { return takes_system_; }  // the template supports system messages

 private:
  const Family& found(const std::function<bool(const std::string&)>& known) const;
  std::string tried(const Value& messages) const;
  void ask();

  jinja::ChatTemplate template_;
  Texts tool_variables_;
  const Family* family_;
  std::optional<Thoughts> thoughts_;
  bool takes_text_ = false, takes_calls_ = false, takes_system_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_DIALECT_H_
