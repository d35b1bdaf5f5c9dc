#include "app/grammar/rules.h"

#include <algorithm>
#include <cstdio>

namespace wherry::app {

std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      literal += escape;
    } else {
      literal += c;
    }
  }
  return literal + '"';
}

Rules::Rules(Special special) : special_(std::move(special)) {
  std::stable_sort(special_.begin(), special_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

std::vector<Rules::Piece> Rules::pieces(std::string_view literal) const {
  std::vector<Piece> parts;
  while (!literal.empty()) {
    const auto token = std::find_if(special_.begin(), special_.end(), [&](const auto& one) {
      return literal.substr(0, one.first.size()) == one.first;
    });
    if (token != special_.end()) {
      parts.emplace_back(token->second, token->first);
      literal.remove_prefix(token->first.size());
      continue;
    }
    if (parts.empty() || parts.back().first >= 0) parts.emplace_back(-1, "");
    parts.back().second += literal[0];
    literal.remove_prefix(1);
  }
  return parts;
}

std::string Rules::either(const std::vector<std::string>& expressions) {
  std::string all;
  for (const std::string& one : expressions) all += (all.empty() ? "(" : " | (") + one + ")";
  return rule(all);
}

}  // namespace wherry::app
