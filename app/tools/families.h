// Families of models that share a format of tool calls, and the detection of a model's family.
#ifndef WHERRY_APP_TOOLS_FAMILIES_H_
#define WHERRY_APP_TOOLS_FAMILIES_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/tools/format.h"

namespace wherry::app {

struct Family {
  std::string name;                      // value of the option tool_format
  Texts signs;                           // texts that all chat templates of the family contain
  std::shared_ptr<const Format> format;  // format of tool calls
  Texts stops;                           // special tokens that end a response
  bool short_ids = false;                // whether call ids must be nine letters and digits
  bool thinking_field = false;           // whether templates read earlier reasoning from "thinking"
  bool channels = false;                 // whether all output has the format, even without calls

  std::string new_id() const;                            // returns a random call id
  std::string known_id(const std::string& given) const;  // maps an id to a valid one
};

// Returns the family of models whose format is unknown.
const Family& generic_family();
// Returns the family in a row of app/data/tool_families.json. Throws Error if there is no such row.
const Family& family_at(size_t row);
// Returns the first family all of whose signs occur in the template, or the generic family.
const Family& family_of(std::string_view chat_template);
// Returns the first family all of whose signs are tokens of the model, or the generic family.
const Family& family_of_tokens(const std::function<bool(const std::string&)>& known);
// Returns the family with a name. Throws Error if the name is unknown.
const Family& family_named(const std::string& name);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_FAMILIES_H_
