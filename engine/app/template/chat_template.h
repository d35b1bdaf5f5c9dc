// A model's own chat template (Jinja, in the dialect of Hugging Face's transformers).
//
// Held byte for byte to runtime_py/text/chat_template.py. What it does not have of Jinja: the block
// autoescape, other templates (include, import, extends fail
// when they are run, as there), the filter random, bytes, and whole numbers of more than 63 bits.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_CHAT_TEMPLATE_H_
#define WHERRY_ENGINE_APP_TEMPLATE_CHAT_TEMPLATE_H_

#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "app/template/budget.h"
#include "app/template/value.h"

namespace wherry::jinja {

struct Program;

// The template refuses the messages, fails, or costs too much: the request's fault.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The template is not valid Jinja, or too large: the model's fault.
class Invalid : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ChatTemplate {
 public:
  // special_tokens: variables of the template, "bos_token", ... Throws Invalid.
  ChatTemplate(std::string source, Value special_tokens);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  // The prompt's text; encode it without special tokens, they are written in it. messages: a list
  // of dictionaries; variables: further ones of this template. gone: whether nobody waits any more.
  // Throws Refused, or Abandoned. Any thread, several at once.
  std::string render(const Value& messages, bool add_generation_prompt, const Value& variables,
                     std::function<bool()> gone = nullptr) const;

  const std::string& source() const { return source_; }
  // Names that the template looks at and does not set itself.
  const std::set<std::string>& variables() const;

 private:
  std::string source_;
  Value special_tokens_;
  std::unique_ptr<const Program> program_;
};

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_CHAT_TEMPLATE_H_
