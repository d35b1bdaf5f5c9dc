#include "app/tools/thoughts.h"

#include <vector>

#include "app/data/data.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

// Returns whether a text, apart from trailing white space, ends with `end`.
bool ends_with(std::string_view text, std::string_view end) {
  text = text.substr(0, unicode::skip_right(text));
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

bool Thoughts::opened(std::string_view prompt) const { return ends_with(prompt, begin); }
bool Thoughts::closed(std::string_view prompt) const { return ends_with(prompt, end); }

std::optional<Thoughts> thoughts_of(std::string_view chat_template) {
  static const std::vector<Thoughts> kMarks = [] {
    std::vector<Thoughts> thoughts;
    const json::Value data = json::from_json(data::kReasoningMarks);
    for (const json::Value& row : data.items()) {
      thoughts.push_back({row.dict().find("begin")->text(), row.dict().find("end")->text()});
    }
    return thoughts;
  }();
  for (const Thoughts& marks : kMarks) {
    if (chat_template.find(marks.end) != chat_template.npos) return marks;
  }
  return std::nullopt;
}

}  // namespace wherry::app
