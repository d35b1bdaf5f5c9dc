// Renders a model's own chat template (Jinja, in the dialect of Hugging Face's transformers).
//
// The output is byte for byte that of jinja2. These parts of Jinja are
// not supported: the block autoescape, other templates (include, import and extends fail when they
// are executed), the filter random, bytes, and integers of more than 63 bits.
#ifndef WHERRY_APP_TEMPLATE_CHAT_TEMPLATE_H_
#define WHERRY_APP_TEMPLATE_CHAT_TEMPLATE_H_

#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "app/template/budget.h"
#include "app/value/value.h"

namespace wherry::jinja {

struct Program;

// The error for a request whose messages the template rejects, or on which it fails or exceeds its
// budget.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The error for a model whose template is not valid Jinja or too large.
class Invalid : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The interface of a model's chat template. Implementations are thread-safe.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  // Returns the prompt's text; encode it without adding special tokens, because it contains them.
  // messages: a list of dictionaries; variables: additional template variables. gone: polled;
  // returns true if the client has aborted the request. Throws Refused, or Abandoned.
  virtual std::string render(const Value& messages, bool add_generation_prompt,
                             const Value& variables,
                             const std::function<bool()>& gone = nullptr) const = 0;

  virtual const std::string& source() const = 0;
  // Returns the names that the template reads and does not set itself.
  virtual const std::set<std::string>& variables() const = 0;
};

// A template that the interpreter of this folder runs.
class InterpretedTemplate : public ChatTemplate {
 public:
  // special_tokens: variables of the template, such as "bos_token". Throws Invalid.
  InterpretedTemplate(std::string source, Value special_tokens);
  ~InterpretedTemplate() override;

  std::string render(const Value& messages, bool add_generation_prompt, const Value& variables,
                     const std::function<bool()>& gone = nullptr) const override;
  const std::string& source() const override { return source_; }
  const std::set<std::string>& variables() const override;

 private:
  std::string source_;
  Value special_tokens_;
  std::unique_ptr<const Program> program_;
};

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_CHAT_TEMPLATE_H_
