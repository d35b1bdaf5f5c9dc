// Turns calls of the functions that stand for custom tools into calls of these tools.
//
// The model writes {"input": "..."} as the arguments of such a function; the client gets the text.
#ifndef WHERRY_APP_TOOLS_CUSTOM_CALLS_H_
#define WHERRY_APP_TOOLS_CUSTOM_CALLS_H_

#include <string>
#include <string_view>
#include <vector>

#include "app/tools/output.h"

namespace wherry::app {

constexpr char kInputArgument[] = "input";  // the only argument of such a function

// Decodes the input of a call from its arguments, as they come. Arguments of another shape, which
// models write by mistake, are the input themselves.
class CustomInput {
 public:
  std::string push(std::string_view text);  // returns the text that these bytes complete
  std::string rest() const;  // returns the input at the end of a call that has another shape

 private:
  std::string pending_;
  bool begun_ = false, ended_ = false;
};

// Translates the parts of one output; not thread-safe.
class CustomCalls {
 public:
  explicit CustomCalls(Texts names) : names_(std::move(names)) {}
  std::vector<Part> translated(std::vector<Part> parts);

 private:
  const Texts names_;
  std::optional<CustomInput> input_;  // the input of the open call of a custom tool
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_CUSTOM_CALLS_H_
