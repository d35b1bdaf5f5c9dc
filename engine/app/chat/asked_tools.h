// The tools of a request that may be called.
#ifndef WHERRY_ENGINE_APP_CHAT_ASKED_TOOLS_H_
#define WHERRY_ENGINE_APP_CHAT_ASKED_TOOLS_H_

#include <vector>

#include "app/chat/fields.h"
#include "app/tools/format.h"

namespace wherry::app {

struct AskedTools {
  jinja::Values tools;       // as templates print them
  std::vector<bool> strict;  // of each: whether its arguments are held to its schema
  bool must = false;         // one has to be called
  bool named = false;        // one that is named: then OpenAI's answers end with "stop"
  bool one = false;          // one call at most

  Tools schemas() const;
};

// Throws RequestError: a tool is asked for that is not there, or two have one name.
AskedTools asked_tools(const Fields& fields);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_ASKED_TOOLS_H_
