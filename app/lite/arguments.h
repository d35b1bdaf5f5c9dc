// Parses the command line of wherry-lite.
#ifndef WHERRY_APP_LITE_ARGUMENTS_H_
#define WHERRY_APP_LITE_ARGUMENTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/value/value.h"

namespace wherry::lite {

using json::Value;
using Items = std::vector<std::pair<Value, Value>>;  // members of a JSON object

struct Arguments {
  std::string command, folder;
  std::optional<std::string> prompt;  // prompt of the command `run`
  bool help = false;
  Items model;    // options of wherry_app_open
  Items request;  // fields of each request
  Items own;      // other options by name, e.g. "port"
  std::vector<std::string> hosts;
  std::vector<std::string> images;  // paths, for the command `run`

  // Searches `own`; returns null if the option was not given.
  const Value* find(const char* name) const;
  std::string text(const char* name, const std::string& otherwise = "") const;
  int64_t number(const char* name, int64_t otherwise) const;
  bool flag(const char* name) const { return find(name) != nullptr; }
};

// Parses a command line. words: the arguments after the program's name. Throws UsageError.
Arguments parse(const std::vector<std::string>& words);

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_ARGUMENTS_H_
