#include "app/lite/conversation.h"

namespace wherry::lite {

Value Conversation::messages() const {
  json::Values values;
  const auto add = [&](const char* role, const std::string& text) {
    values.push_back(json::make_dict({{"role", role}, {"content", text}}));
  };
  if (!system_.empty()) add("system", system_);
  for (const Turn& turn : turns_) add(turn.role, turn.text);
  return json::make_list(std::move(values));
}

std::optional<std::string> Conversation::withdraw() {
  while (!turns_.empty()) {
    const Turn turn = std::move(turns_.back());
    turns_.pop_back();
    if (turn.role[0] == 'u') return turn.text;
  }
  return std::nullopt;
}

}  // namespace wherry::lite
