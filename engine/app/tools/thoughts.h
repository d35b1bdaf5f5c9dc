// What models write to themselves before they answer, between two marks.
#ifndef WHERRY_ENGINE_APP_TOOLS_THOUGHTS_H_
#define WHERRY_ENGINE_APP_TOOLS_THOUGHTS_H_

#include <optional>
#include <string>
#include <string_view>

namespace wherry::app {

// The two marks. Templates of some models write the first one at the end of the prompt.
struct Thoughts {
  std::string begin, end;
  bool opened(std::string_view prompt) const;  // whether a prompt ends inside reasoning
  bool closed(std::string_view prompt) const;  // or after it, so that none will come
};

// The marks that a template knows; nothing: its model does not think in marks.
std::optional<Thoughts> thoughts_of(std::string_view chat_template);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_THOUGHTS_H_
