// The marks around a model's reasoning, such as <think> and </think>.
#ifndef WHERRY_APP_TOOLS_THOUGHTS_H_
#define WHERRY_APP_TOOLS_THOUGHTS_H_

#include <optional>
#include <string>
#include <string_view>

namespace wherry::app {

// The opening and closing mark. Some templates end the prompt with the opening mark.
struct Thoughts {
  std::string begin, end;
  bool opened(std::string_view prompt) const;  // whether a prompt ends with the opening mark
  bool closed(std::string_view prompt) const;  // whether a prompt ends with the closing mark
};

// Returns the marks whose closing mark the template contains; nothing if there are none, because
// the model then does not mark its reasoning.
std::optional<Thoughts> thoughts_of(std::string_view chat_template);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_THOUGHTS_H_
