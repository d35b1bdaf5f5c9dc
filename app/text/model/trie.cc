#include "app/text/model/trie.h"

namespace wherry::text {

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> keys) {
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return std::lexicographical_compare(a.first.begin(), a.first.end(), b.first.begin(),
                                        b.first.end());  // compares as char, as the labels do
  });
  size_t kept = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    bool again = i + 1 < keys.size() && keys[i + 1].first == keys[i].first;
    if (!again && !keys[i].first.empty()) keys[kept++] = keys[i];
  }
  keys.resize(kept);
  nodes_.emplace_back();
  labels_ += '\0';
  struct Part {  // the keys[low, high), which share the first `depth` bytes
    uint32_t at;
    size_t low, high, depth;
  };
  std::vector<Part> parts;
  if (!keys.empty()) parts.push_back({0, 0, keys.size(), 0});
  while (!parts.empty()) {
    auto [at, low, high, depth] = parts.back();
    parts.pop_back();
    if (high - low == 1) {
      std::string_view tail = keys[low].first.substr(depth);
      nodes_[at].tail = static_cast<uint32_t>(tails_.size());
      nodes_[at].tail_length = static_cast<uint32_t>(tail.size());
      nodes_[at].value = keys[low].second;
      tails_ += tail;
      continue;
    }
    if (keys[low].first.size() == depth) nodes_[at].value = keys[low++].second;
    nodes_[at].first = static_cast<uint32_t>(nodes_.size());
    for (size_t end = low; low < high; low = end) {
      char label = keys[low].first[depth];
      while (end < high && keys[end].first[depth] == label) ++end;
      parts.push_back({static_cast<uint32_t>(nodes_.size()), low, end, depth + 1});
      ++nodes_[at].children;
      nodes_.emplace_back();
      labels_ += label;
    }
  }
  nodes_.shrink_to_fit();
  labels_.shrink_to_fit();
  tails_.shrink_to_fit();
}

}  // namespace wherry::text
