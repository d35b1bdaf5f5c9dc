#include "app/tools/thoughts.h"

#include "app/template/code_points.h"

namespace wherry::app {

namespace {

// White space behind it left out.
bool ends_with(std::string_view text, std::string_view end) {
  text = text.substr(0, jinja::skip_right(text));
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

bool Thoughts::opened(std::string_view prompt) const { return ends_with(prompt, begin); }
bool Thoughts::closed(std::string_view prompt) const { return ends_with(prompt, end); }

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
