// What wherry-lite says of itself.
#ifndef WHERRY_ENGINE_TOOLS_LITE_USAGE_H_
#define WHERRY_ENGINE_TOOLS_LITE_USAGE_H_

#include <stdexcept>
#include <string>

namespace wherry::lite {

// The help text of a command; of the program where there is no such command.
std::string usage(const std::string& command);

// What was typed makes no sense: exit code 2, and where the help is.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_USAGE_H_
