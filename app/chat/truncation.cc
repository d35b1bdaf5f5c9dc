#include "app/chat/truncation.h"

#include <algorithm>
#include <utility>

namespace wherry::app {

namespace {

constexpr int64_t kShare = 4;  // a response without a limit gets 1 / kShare of the context

std::string role_of(const Value& message) { return Fields(message).text("role"); }

// Returns where the kept messages may begin: at the first that is no instruction, or at a later
// message of the user.
std::vector<size_t> beginnings(const Values& messages) {
  const auto spoken = std::find_if(messages.begin(), messages.end(), [](const Value& message) {
    const std::string role = role_of(message);
    return role != "system" && role != "developer";
  });
  std::vector<size_t> result{static_cast<size_t>(spoken - messages.begin())};
  for (size_t i = result[0] + 1; i < messages.size(); ++i) {
    if (role_of(messages[i]) == "user") result.push_back(i);
  }
  return result;
}

Fields with_messages(const Fields& fields, Values messages) {
  std::vector<std::pair<Value, Value>> items = fields.object().dict().items;
  items.emplace_back("messages", json::make_list(std::move(messages)));  // replaces the original
  return Fields(json::make_dict(std::move(items)), fields.unknown());
}

}  // namespace

Truncated truncated(Fields fields, int64_t context,
                    const std::function<int64_t(const Fields& fields)>& tokens) {
  if (fields.text("truncation") != "auto") return {std::move(fields)};
  const int64_t reserved = fields.integer("max_completion_tokens")
                               .value_or(fields.integer("max_tokens").value_or(context / kShare));
  const int64_t most = context - reserved;
  const Values messages = fields.find("messages")->items();
  const std::vector<size_t> begins = beginnings(messages);
  const auto from = [&](size_t begin) {
    if (begin == begins[0]) return fields;
    Values kept(messages.begin(), messages.begin() + static_cast<int64_t>(begins[0]));
    kept.insert(kept.end(), messages.begin() + static_cast<int64_t>(begin), messages.end());
    return with_messages(fields, std::move(kept));
  };
  if (tokens(fields) <= most) return {std::move(fields)};
  // Of the later beginnings the first that fits, or the last: fewer messages have fewer tokens.
  const auto match = std::partition_point(begins.begin() + 1, begins.end(), [&](size_t begin) {
    return begin != begins.back() && tokens(from(begin)) > most;
  });
  const size_t begin = match == begins.end() ? begins[0] : *match;
  return {from(begin), static_cast<int64_t>(begin - begins[0])};
}

}  // namespace wherry::app
