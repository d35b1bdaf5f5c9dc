// Calls as JSON objects: {"name": ..., "arguments": {...}}, with the keys that a family uses.
#ifndef WHERRY_APP_TOOLS_CALL_OBJECT_H_
#define WHERRY_APP_TOOLS_CALL_OBJECT_H_

#include <string>
#include <vector>

#include "app/tools/format.h"

namespace wherry::app {

struct CallObject {
  std::vector<std::string> name = {"name"};                          // keys of the tool's name
  std::vector<std::string> arguments = {"arguments", "parameters"};  // keys of its arguments
  std::string end;  // the text after the object; it also ends arguments whose braces are not closed
  bool ids = false;  // whether its "id" is the call's id

  // Reads a call; emits nothing before the name is known. known: only calls of these tools count;
  // null: any name. Returns whether there was a call, complete or cut off.
  bool read(Scanner& s, Output& out, const Tools* known) const;
  // Reads [call, call, ...], or a single call.
  bool list(Scanner& s, Output& out, const Tools* known) const;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_CALL_OBJECT_H_
