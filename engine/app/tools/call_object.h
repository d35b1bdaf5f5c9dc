// Calls that are JSON objects: {"name": ..., "arguments": {...}}, under the names families use.
#ifndef WHERRY_ENGINE_APP_TOOLS_CALL_OBJECT_H_
#define WHERRY_ENGINE_APP_TOOLS_CALL_OBJECT_H_

#include <string>
#include <vector>

#include "app/tools/format.h"

namespace wherry::app {

struct CallObject {
  std::vector<std::string> name = {"name"};                          // keys of the tool's name
  std::vector<std::string> arguments = {"arguments", "parameters"};  // keys of its arguments
  std::string end;   // what comes after it; arguments that are not closed end there
  bool ids = false;  // whether an "id" in it is the call's

  // Takes a call; nothing is given out before its name is known. known: the tools whose names make
  // it one; null: any name. Whether it is one: if so all of it is taken, or what there is of it.
  bool read(Scanner& s, Output& out, const Tools* known) const;
  // Takes [call, call, ...], or one call alone.
  bool list(Scanner& s, Output& out, const Tools* known) const;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_CALL_OBJECT_H_
