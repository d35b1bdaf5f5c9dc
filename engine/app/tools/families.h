// The families of models that write calls in one way, and which of them a model belongs to.
#ifndef WHERRY_ENGINE_APP_TOOLS_FAMILIES_H_
#define WHERRY_ENGINE_APP_TOOLS_FAMILIES_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/tools/format.h"

namespace wherry::app {

struct Family {
  std::string name;                      // for the option that names a family
  Texts signs;                           // texts that are all in the chat templates of its models
  std::shared_ptr<const Format> format;  // how it writes
  Texts stops;                           // special tokens that end an answer
  bool short_ids = false;  // ids of calls are nine letters and digits, which templates insist on
  bool thinking_field = false;  // earlier reasoning is a message's "thinking" to the template
  bool channels = false;        // all text comes in the format, calls or none

  std::string new_id() const;                            // of a call
  std::string known_id(const std::string& given) const;  // for one that may come from elsewhere
};

const Family& generic_family();
// The family whose signs a template shows; the generic one if none.
const Family& family_of(std::string_view chat_template);
// The family whose signs are all tokens of a model; the generic one if there is none.
const Family& family_of_tokens(const std::function<bool(const std::string&)>& known);
// Throws Error: there is none of this name.
const Family& family_named(const std::string& name);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_FAMILIES_H_
