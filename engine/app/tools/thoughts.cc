#include "app/tools/thoughts.h"

#include "app/template/code_points.h"

namespace wherry::app {

bool Thoughts::opened(std::string_view prompt) const {
  prompt = prompt.substr(0, jinja::skip_right(prompt));
  return prompt.size() >= begin.size() && prompt.substr(prompt.size() - begin.size()) == begin;
}

std::optional<Thoughts> thoughts_of(std::string_view chat_template) {
  static const Thoughts kMarks[] = {
      {"<think>", "</think>"},
      {"[THINK]", "[/THINK]"},
      {"<|START_THINKING|>", "<|END_THINKING|>"},
      {"<seed:think>", "</seed:think>"},
      {"<|channel>thought", "<channel|>"},
  };
  for (const Thoughts& marks : kMarks) {
    if (chat_template.find(marks.end) != chat_template.npos) return marks;
  }
  return std::nullopt;
}

}  // namespace wherry::app
