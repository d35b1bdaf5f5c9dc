// The radix tree of cached prefixes. A node is one page of tokens; its path from the root is the
// prefix that the page's keys and values were computed behind, so equal paths have equal bytes.
//
//   root(salt) -- [16 tokens] -- [16 tokens] -- [9 tokens]
//                            \-- [16 tokens]
//
// A root is there for as long as something is behind it, or a sequence stands at it: salts are the
// clients' to choose. Nodes own a reference of their pages in the pools. Only a leaf may hold less
// than a page. A page of a windowed group may be given up alone, which leaves its node with -1
// there.
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
  std::vector<int32_t> tokens;  // of this page; empty: a root
  std::vector<int32_t> pages;   // one for each group; -1: none
  int32_t snapshot = -1;        // slot of the recurrent state behind these tokens
  uint64_t used = 0;            // when, by the tree's clock
  bool saved = false;           // it has been offered to the disk tier
  int32_t standing = 0;         // sequences that go on from here
  std::map<std::vector<int32_t>, std::unique_ptr<PrefixNode>> children;

  bool is_root() const { return parent == nullptr; }
};

// What decides whether a prefix may be shared.
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
  // `windows`: of each group, 0 for none. `slots`: null where there is no recurrent state.
  PrefixTree(std::vector<PagePool*> pools, std::vector<int64_t> windows, PagePool* slots,
             int64_t page_size);
  ~PrefixTree();

  struct Match {
    PrefixNode* node = nullptr;        // of the last whole page, or the root
    int64_t tokens = 0;                // in whole pages
    const PrefixNode* half = nullptr;  // its first half_tokens tokens go on from there
    int64_t half_tokens = 0;
  };
  // The longest usable prefix of tokens[0..n). Its node is to be held if it is no root.
  Match match(const PrefixSpace& space, const int32_t* tokens, int64_t n);

  PrefixNode* root(const PrefixSpace& space);  // is made; to be held before anything is removed
  PrefixNode* find_root(
      const PrefixSpace& space);  // of a space that has none: one without children
  // A sequence goes on from here, or not any more.
  void hold(PrefixNode& node) { ++node.standing; }
  void let_go(PrefixNode& node);
  PrefixNode* child(PrefixNode& parent, const int32_t* tokens, int64_t n) const;
  // A child with these tokens and pages, of which it takes a reference. There must be none yet.
  PrefixNode* add(PrefixNode& parent, const int32_t* tokens, int64_t n,
                  const std::vector<int32_t>& pages);
  // Gives a node a page that it lacks.
  void give(PrefixNode& node, size_t group, int32_t page);
  void give_snapshot(PrefixNode& node, int32_t slot);
  void touch(PrefixNode& node);  // and those before it

  // Frees a page of this group that nobody but the tree holds: the least recently used one.
  bool evict(size_t group);
  bool evict_snapshot();
  void clear();  // all that nobody else holds

  // Pages that evict() could free.
  int64_t idle(size_t group) const;
  size_t groups() const { return pools_.size(); }
  size_t roots() const { return roots_.size(); }

  // Called before a node goes.
  std::function<void(PrefixNode&)> on_remove;

 private:
  using Order = std::set<std::pair<uint64_t, PrefixNode*>>;
  struct Root : PrefixNode {
    PrefixSpace space;
  };

  bool usable(const PrefixNode* node, int64_t tokens, const PrefixNode* half) const;
  bool held_elsewhere(const PrefixNode& node) const;
  void enlist(PrefixNode& node);
  void delist(PrefixNode& node);
  void remove(PrefixNode& leaf);  // and those before it that are no use without it
  void detach(PrefixNode& leaf);
  void prune(PrefixNode* node);
  void drop_page(PrefixNode& node, size_t group);

  const std::vector<PagePool*> pools_;
  const std::vector<int64_t> windows_;
  PagePool* const slots_;
  const int64_t page_size_;
  std::map<PrefixSpace, Root> roots_;
  PrefixNode nowhere_;           // the root of spaces that have none
  Order leaves_;                 // by last use
  std::vector<Order> windowed_;  // nodes with a page in this group; empty for groups without window
  Order snapshots_;
  uint64_t clock_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_PREFIX_TREE_H_
