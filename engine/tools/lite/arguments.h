// What was typed.
#ifndef WHERRY_ENGINE_TOOLS_LITE_ARGUMENTS_H_
#define WHERRY_ENGINE_TOOLS_LITE_ARGUMENTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/template/value.h"

namespace wherry::lite {

using jinja::Value;
using Items = std::vector<std::pair<Value, Value>>;  // of a JSON object

struct Arguments {
  std::string command, folder;
  std::optional<std::string> prompt;  // of `run`
  bool help = false;
  Items model;    // options of wherry_app_open
  Items request;  // fields of each request
  Items own;      // the rest, by the option's name: "port"
  std::vector<std::string> hosts;

  const Value* find(const char* name) const;  // of `own`; null: not typed
  std::string text(const char* name, const std::string& otherwise = "") const;
  int64_t number(const char* name, int64_t otherwise) const;
  bool flag(const char* name) const { return find(name) != nullptr; }
};

// words: behind the program's name. Throws UsageError.
Arguments parse(const std::vector<std::string>& words);

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_ARGUMENTS_H_
