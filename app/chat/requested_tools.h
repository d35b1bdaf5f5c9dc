// The tools that a request allows the model to call.
#ifndef WHERRY_APP_CHAT_REQUESTED_TOOLS_H_
#define WHERRY_APP_CHAT_REQUESTED_TOOLS_H_

#include <optional>
#include <string>
#include <vector>

#include "app/request/fields.h"
#include "app/tools/format.h"

namespace wherry::app {

// The grammar of a custom tool's input.
struct InputGrammar {
  std::string syntax;  // "lark" or "regex"
  std::string definition;
};

struct RequestedTools {
  json::Values tools;  // tools in the form that templates print
  Texts custom;        // names of custom tools, which the model sees as functions
  // For each tool, the grammar of its input; nothing for functions and inputs of any text.
  std::vector<std::optional<InputGrammar>> inputs;
  std::vector<bool> strict;  // for each tool, whether a grammar enforces its schema
  bool must = false;         // whether the model has to call a tool
  // Whether the request names the tool to call: OpenAI's responses then end with "stop".
  bool named = false;
  bool one = false;  // whether the model may make at most one call

  Tools schemas() const;
};

// Returns the tools of a request. Throws RequestError if the request names a tool that it does not
// declare, or two tools have one name.
RequestedTools requested_tools(const Fields& fields);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_REQUESTED_TOOLS_H_
