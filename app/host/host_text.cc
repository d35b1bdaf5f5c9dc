#include "app/host/host_text.h"

#include "app/value/json_text.h"

namespace wherry::app {

text::Pair HostTokenizer::encode_pair(std::string_view first, std::string_view second) const {
  const std::vector<int32_t> numbers = services_.encode_pair(first, second);
  const auto n = static_cast<std::ptrdiff_t>(numbers.size() / 3);
  const auto begin = numbers.begin();
  return {{begin, begin + n}, {begin + n, begin + 2 * n}, {begin + 2 * n, numbers.end()}};
}

std::optional<int32_t> HostTokenizer::id_of(std::string_view token) const {
  const int64_t id = services_.id_of(token);
  return id < 0 ? std::nullopt : std::optional(static_cast<int32_t>(id));
}

std::optional<std::string> HostTokenizer::token_of(int32_t id) const {
  const Token& match = token(id);
  return match.kind == WHERRY_HOST_UNKNOWN ? std::nullopt : std::optional(match.name);
}

const HostTokenizer::Token& HostTokenizer::token(int32_t id) const {
  {
    const std::lock_guard lock(mutex_);
    const auto known = tokens_.find(id);
    if (known != tokens_.end()) return known->second;
  }
  // Without the lock, because the host may wait for another thread that asks for a token.
  Token result;
  result.kind = services_.token(id, result.piece, result.name);
  const std::lock_guard lock(mutex_);
  return tokens_.emplace(id, std::move(result)).first->second;
}

std::string HostTemplate::render(const json::Value& messages, bool add_generation_prompt,
                                 const json::Value& variables, const std::function<bool()>&) const {
  return services_.render(
      which_, json::to_compact_json(json::make_dict(
                  {{"messages", messages},
                   {"add_generation_prompt", add_generation_prompt},
                   {"variables", variables.is_none() ? json::make_dict({}) : variables}})));
}

}  // namespace wherry::app
