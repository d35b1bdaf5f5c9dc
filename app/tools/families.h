// Families of models with a common format of tool calls, and how a model's family is found.
#ifndef WHERRY_APP_TOOLS_FAMILIES_H_
#define WHERRY_APP_TOOLS_FAMILIES_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/tools/format.h"

namespace wherry::app {

struct Family {
  std::string name;                      // used by the option that selects a family
  Texts signs;                           // texts that all its models' chat templates contain
  std::shared_ptr<const Format> format;  // the format of its calls
  Texts stops;                           // special tokens that end a response
  bool short_ids = false;       // call ids have nine letters and digits, as its templates require
  bool thinking_field = false;  // the template expects earlier reasoning in a message's "thinking"
  bool channels = false;        // all output has the format, with or without calls

  std::string new_id() const;                            // creates a call's id
  std::string known_id(const std::string& given) const;  // a valid id for a given one
};

const Family& generic_family();
// Returns the family whose signs the template contains; otherwise the generic one.
const Family& family_of(std::string_view chat_template);
// Returns the family whose signs are all tokens of the model; otherwise the generic one.
const Family& family_of_tokens(const std::function<bool(const std::string&)>& known);
// Throws Error: unknown name.
const Family& family_named(const std::string& name);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_FAMILIES_H_
