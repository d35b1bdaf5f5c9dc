// A trie that finds all keys that are prefixes of a text.
#ifndef WHERRY_APP_TEXT_MODEL_TRIE_H_
#define WHERRY_APP_TEXT_MODEL_TRIE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::text {

// A trie over bytes. The tail of a branch with only one key is stored as a string.
class Trie {
 public:
  // Builds the trie; of equal keys, the last value wins. Empty keys are ignored.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> keys);

  // Calls each(length, value) for every key that is a prefix of `text`, the shortest first.
  template <typename Each>
  void prefixes(std::string_view text, Each each) const {
    uint32_t at = 0;
    for (size_t depth = 0;;) {
      const Node& node = nodes_[at];
      // The node has only one key, whose tail is compared.
      if (node.tail_length > 0 || node.children == 0) {
        std::string_view tail = std::string_view(tails_).substr(node.tail, node.tail_length);
        if (text.substr(depth, tail.size()) == tail && node.value >= 0) {
          each(depth + tail.size(), node.value);
        }
        return;
      }
      if (node.value >= 0) each(depth, node.value);
      if (depth == text.size()) return;
      const char* labels = labels_.data() + node.first;
      const char* label = std::lower_bound(labels, labels + node.children, text[depth]);
      if (label == labels + node.children || *label != text[depth]) return;
      at = node.first + static_cast<uint32_t>(label - labels);
      ++depth;
    }
  }

 private:
  struct Node {
    // Index of the first child; children are adjacent, and labels_ has their labels.
    uint32_t first = 0;
    uint32_t children = 0;
    uint32_t tail = 0, tail_length = 0;
    int32_t value = -1;
  };

  std::vector<Node> nodes_;
  std::string labels_;  // label of the edge that leads to each node
  std::string tails_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_MODEL_TRIE_H_
