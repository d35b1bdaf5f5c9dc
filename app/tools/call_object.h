// Reads tool calls that are JSON objects, such as {"name": ..., "arguments": {...}}.
#ifndef WHERRY_APP_TOOLS_CALL_OBJECT_H_
#define WHERRY_APP_TOOLS_CALL_OBJECT_H_

#include <string>
#include <string_view>
#include <vector>

#include "app/tools/format.h"

namespace wherry::app {

// The keys of a call object in one format.
struct CallObject {
  std::vector<std::string> name = {"name"};                          // keys of the tool's name
  std::vector<std::string> arguments = {"arguments", "parameters"};  // keys of the arguments
  bool ids = false;  // whether the object's "id" is the id of the call

  // Reads a JSON list of call objects, or a single one; returns whether there was a call, complete
  // or truncated. Emits nothing before the tool's name is known. known: the tools that may be
  // called; null: any name. end: the text after the objects; it also ends unclosed arguments.
  bool list(Scanner& s, Output& out, const Tools* known, std::string_view end = "") const;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_CALL_OBJECT_H_
