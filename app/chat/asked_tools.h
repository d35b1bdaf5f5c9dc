// The tools that a request allows the model to call.
#ifndef WHERRY_APP_CHAT_ASKED_TOOLS_H_
#define WHERRY_APP_CHAT_ASKED_TOOLS_H_

#include <vector>

#include "app/request/fields.h"
#include "app/tools/format.h"

namespace wherry::app {

struct AskedTools {
  jinja::Values tools;       // as templates print them
  std::vector<bool> strict;  // for each tool: whether a grammar enforces its schema
  bool must = false;         // the model has to call a tool
  bool named = false;        // the request names the tool: OpenAI's responses then end with "stop"
  bool one = false;          // the model may make one call at most

  Tools schemas() const;
};

// Throws RequestError: the request names a tool that it does not declare, or two tools have one
// name.
AskedTools asked_tools(const Fields& fields);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_ASKED_TOOLS_H_
