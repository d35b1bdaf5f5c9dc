// What a model's chat template tells of its model: how it calls tools, and whether it thinks.
#ifndef WHERRY_ENGINE_APP_TOOLS_DIALECT_H_
#define WHERRY_ENGINE_APP_TOOLS_DIALECT_H_

#include <functional>
#include <optional>
#include <string>

#include "app/template/chat_template.h"
#include "app/tools/families.h"
#include "app/tools/thoughts.h"

namespace wherry::app {

class Dialect {
 public:
  // tool_format: name of the family; "": it is found. known: whether a name is that of a token. A
  // template that prints tools and does not say how they are called leaves it to the tokens that
  // calls begin with. Throws Error: there is no family of this name.
  Dialect(jinja::ChatTemplate chat_template, const std::string& tool_format,
          const std::function<bool(const std::string&)>& known);

  const jinja::ChatTemplate& chat_template() const { return template_; }
  const Family& family() const { return *family_; }
  const std::optional<Thoughts>& thoughts() const { return thoughts_; }
  // Whether the template tells the model of tools; else the conversation must.
  bool native() const { return !tool_variables_.empty(); }
  const Texts& tool_variables() const { return tool_variables_; }  // under which it looks for them
  bool knows(const std::string& variable) const;                   // whether it looks at it
  // Whether arguments of earlier calls are JSON to the template, rather than objects.
  bool takes_text() const { return takes_text_; }
  bool takes_calls() const { return takes_calls_; }    // it prints earlier calls
  bool takes_system() const { return takes_system_; }  // it knows system messages

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

#endif  // WHERRY_ENGINE_APP_TOOLS_DIALECT_H_
