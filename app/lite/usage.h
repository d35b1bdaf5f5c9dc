// The help texts of wherry-lite.
#ifndef WHERRY_APP_LITE_USAGE_H_
#define WHERRY_APP_LITE_USAGE_H_

#include <stdexcept>
#include <string>

namespace wherry::lite {

// Returns the help text of a command; the program's help text if the command is unknown.
std::string usage(const std::string& command);

// The exception for wrong usage: the program prints a hint at the help and exits with code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_USAGE_H_
