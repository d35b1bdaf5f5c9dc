// The tools of a request that may be called.
#ifndef WHERRY_ENGINE_APP_CHAT_ASKED_TOOLS_H_
#define WHERRY_ENGINE_APP_CHAT_ASKED_TOOLS_H_

#include "app/chat/fields.h"
#include "app/tools/format.h"

namespace wherry::app {

struct AskedTools {
  jinja::Values tools;  // as templates print them
  bool one = false;     // one call at most

  Tools schemas() const;
};

// Throws RequestError: a tool is asked for that is not there, two have one name, or the output
// would have to be held to a grammar, which this runtime has none of.
AskedTools asked_tools(const Fields& fields);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_ASKED_TOOLS_H_
