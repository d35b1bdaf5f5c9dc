// The marks around a model's reasoning.
#ifndef WHERRY_APP_TOOLS_THOUGHTS_H_
#define WHERRY_APP_TOOLS_THOUGHTS_H_

#include <optional>
#include <string>
#include <string_view>

namespace wherry::app {

// The two marks. Some templates write the first one at the end of the prompt.
struct Thoughts {
  std::string begin, end;
  bool opened(std::string_view prompt) const;  // whether a prompt ends inside reasoning
  bool closed(std::string_view prompt) const;  // or after it, so that no reasoning follows
};

// Returns the marks that a template contains; nothing: its model writes no marked reasoning.
std::optional<Thoughts> thoughts_of(std::string_view chat_template);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_THOUGHTS_H_
