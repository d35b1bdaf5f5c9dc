// The radix tree of cached prefixes. A node is one page of tokens; the path from the root to it is
// the prefix that determines the page's keys and values, so equal paths have equal bytes.
//
//   root(salt) -- [16 tokens] -- [16 tokens] -- [9 tokens]
//                            \-- [16 tokens]
//
// A root without children and pins is removed, because clients choose salts and could make any
// number of roots. A node has a reference of each of its pages in the pools. Only a leaf may have
// fewer tokens than a page. Eviction may free the page of a windowed group alone, which leaves -1
// in the node.
#ifndef WHERRY_ENGINE_CACHE_PREFIX_TREE_H_
#define WHERRY_ENGINE_CACHE_PREFIX_TREE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "cache/page_pool.h"

namespace wherry {

struct PrefixNode {
  PrefixNode* parent = nullptr;
  std::vector<int32_t> tokens;  // tokens of this page; empty for a root
  std::vector<int32_t> pages;   // one page id for each group; -1 if the page was evicted
  int32_t snapshot = -1;  // slot with the recurrent state after these tokens; -1 if there is none
  uint64_t used = 0;      // time of the last use, by the tree's clock
  bool saved = false;     // whether the page was offered to the disk tier
  int32_t pins = 0;       // number of sequences that continue this prefix
  std::map<std::vector<int32_t>, std::unique_ptr<PrefixNode>> children;

  bool is_root() const { return parent == nullptr; }
};

// Names a space of prefixes; only requests of one space share prefixes.
struct PrefixSpace {
  uint64_t salt = 0;
  int32_t adapter = 0;
  bool embed = false;

  bool operator==(const PrefixSpace& other) const {
    return salt == other.salt && adapter == other.adapter && embed == other.embed;
  }
  bool operator<(const PrefixSpace& other) const {
    return std::tie(salt, adapter, embed) < std::tie(other.salt, other.adapter, other.embed);
  }
};

class PrefixTree {
 public:
  // windows: [groups] tokens, 0 for groups without a window. slots: null for models without
  // recurrent state.
  PrefixTree(std::vector<PagePool*> pools, std::vector<int64_t> windows, PagePool* slots,
             int64_t page_size);
  ~PrefixTree();

  struct Match {
    PrefixNode* node = nullptr;        // node of the last whole page, or the root
    int64_t tokens = 0;                // number of matching tokens in whole pages
    const PrefixNode* half = nullptr;  // a child whose first half_tokens tokens also match
    int64_t half_tokens = 0;
  };
  // Finds the longest usable prefix of tokens[0..n). The caller pins the match's node unless it is
  // a root.
  Match match(const PrefixSpace& space, const int32_t* tokens, int64_t n);

  // Creates the root if needed; pin it before any removal.
  PrefixNode* root(const PrefixSpace& space);
  // Returns an empty node for a space without a root.
  PrefixNode* find_root(const PrefixSpace& space);
  // Protect a node from removal while a sequence continues it, and end that protection.
  void pin(PrefixNode& node) { ++node.pins; }
  void unpin(PrefixNode& node);
  PrefixNode* child(PrefixNode& parent, const int32_t* tokens, int64_t n) const;
  // Adds a child, which takes references of the pages. The parent must have no child with these
  // tokens.
  PrefixNode* add(PrefixNode& parent, const int32_t* tokens, int64_t n,
                  const std::vector<int32_t>& pages);
  // Gives a node the page of a group that it lacks.
  void give(PrefixNode& node, size_t group, int32_t page);
  void give_snapshot(PrefixNode& node, int32_t slot);
  // Takes the node's snapshot away and returns its slot. The node must have a child or a pin.
  int32_t take_snapshot(PrefixNode& node);
  void touch(PrefixNode& node);  // marks the node and its ancestors as used

  // Frees the least recently used page of this group among those that only the tree references.
  bool evict(size_t group);
  bool evict_snapshot();
  int32_t snapshots() const { return static_cast<int32_t>(snapshots_.size()); }
  void clear();  // evicts every node that no sequence uses

  // Counts the pages of this group that evict() could free.
  int64_t idle(size_t group) const;
  size_t groups() const { return pools_.size(); }
  size_t roots() const { return roots_.size(); }

  // Callback that runs before a node is removed.
  std::function<void(PrefixNode&)> on_remove;

 private:
  using Order = std::set<std::pair<uint64_t, PrefixNode*>>;
  struct Root : PrefixNode {
    PrefixSpace space;
  };

  bool usable(const PrefixNode* node, int64_t tokens, const PrefixNode* half) const;
  bool in_use(const PrefixNode& node) const;
  void enlist(PrefixNode& node);
  void delist(PrefixNode& node);
  void remove(PrefixNode& leaf);  // also removes ancestors that are useless without the leaf
  void detach(PrefixNode& leaf);
  void prune(PrefixNode* node);
  void drop_page(PrefixNode& node, size_t group);

  const std::vector<PagePool*> pools_;
  const std::vector<int64_t> windows_;
  PagePool* const slots_;
  const int64_t page_size_;
  std::map<PrefixSpace, Root> roots_;
  PrefixNode nowhere_;           // empty node that find_root() returns for spaces without a root
  Order leaves_;                 // leaves, the least recently used first
  std::vector<Order> windowed_;  // nodes with a page in each windowed group; empty for other groups
  Order snapshots_;
  uint64_t clock_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_PREFIX_TREE_H_
