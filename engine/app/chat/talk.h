// One chat's tools and reasoning: what the template is told, what the output is looked through for.
#ifndef WHERRY_ENGINE_APP_CHAT_TALK_H_
#define WHERRY_ENGINE_APP_CHAT_TALK_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/asked_tools.h"
#include "app/chat/fields.h"
#include "app/grammar/constraint.h"
#include "app/text/tokenizer.h"
#include "app/tools/dialect.h"
#include "app/tools/output_parser.h"

namespace wherry::app {

class Talk {
 public:
  // dialect: null where the model has no template; it has to outlive this, as the fields have to.
  // Throws RequestError: tools that contradict each other, content that is not text.
  Talk(const Fields& fields, const Dialect* dialect);

  // The prompt. Throws RequestError, or jinja::Abandoned: nobody waits any more, as `gone` says.
  std::string rendered(const std::function<bool()>& gone) const;
  // What to look for in the output that follows a prompt.
  Reading reading(const std::string& prompt) const;
  // What the output that follows a prompt is held to, if anything. base: what the request's other
  // fields hold its text to. Throws RequestError: a strict tool's parameters cannot be enforced.
  std::optional<Constraint> constraint(const std::string& prompt,
                                       const std::optional<Constraint>& base,
                                       const Tokenizer& tokenizer) const;
  bool named() const { return asked_.named; }  // one tool must be called, which is named
  // Special tokens that the parser has to see.
  std::vector<int32_t> visible(const Tokenizer& tokenizer) const;
  // Tokens that end an answer, beside those that are known.
  std::vector<int32_t> stop_ids(const Tokenizer& tokenizer, std::vector<int32_t> known) const;

 private:
  Value variables() const;
  bool separate() const;
  bool in_format() const;
  bool goes_on_thinking(const Thoughts& thoughts) const;
  bool goes_on_in_words(const Thoughts& thoughts) const;

  const Fields& fields_;
  const Dialect& dialect_;
  AskedTools asked_;
  Values messages_;  // for the template
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_TALK_H_
