#include "cache/prefix_tree.h"

#include <algorithm>
#include <utility>

namespace wherry {

namespace {

int64_t common_length(const std::vector<int32_t>& a, const int32_t* b, int64_t n) {
  int64_t most = std::min(static_cast<int64_t>(a.size()), n), i = 0;
  while (i < most && a[static_cast<size_t>(i)] == b[i]) ++i;
  return i;
}

bool holds_nothing(const PrefixNode& node) {
  return node.snapshot < 0 &&
         std::all_of(node.pages.begin(), node.pages.end(), [](int32_t page) { return page < 0; });
}

// Finds the child that shares the longest prefix with tokens[0..n); returns it and the prefix's
// length.
std::pair<const PrefixNode*, int64_t> longest_match(const PrefixNode& node, const int32_t* tokens,
                                                    int64_t n) {
  std::pair<const PrefixNode*, int64_t> best{nullptr, 0};
  if (node.children.empty() || n == 0) return best;
  auto after = node.children.lower_bound(std::vector<int32_t>(tokens, tokens + n));
  auto consider =
      // Children are sorted by tokens, so a neighbour has the longest match.
      [&](const PrefixNode& child) {
        int64_t length = common_length(child.tokens, tokens, n);
        if (length > best.second) best = {&child, length};
      };
  if (after != node.children.end()) consider(*after->second);
  if (after != node.children.begin()) consider(*std::prev(after)->second);
  return best;
}

// Finds a child with fewer tokens than a page whose tokens all match the beginning of tokens[0..n).
const PrefixNode* half_of(const PrefixNode& parent, const int32_t* tokens, int64_t n) {
  auto [half, length] = longest_match(parent, tokens, n);
  bool matches = half && length == static_cast<int64_t>(half->tokens.size()) && length < n;
  return matches ? half : nullptr;
}

}  // namespace

PrefixTree::PrefixTree(std::vector<PagePool*> pools, std::vector<int64_t> windows, PagePool* slots,
                       int64_t page_size)
    : pools_(std::move(pools)),
      windows_(std::move(windows)),
      slots_(slots),
      page_size_(page_size),
      windowed_(pools_.size()) {}

PrefixTree::~PrefixTree() {
  on_remove = nullptr;
  while (!leaves_.empty()) remove(*leaves_.begin()->second);
}

PrefixNode* PrefixTree::root(const PrefixSpace& space) {
  Root& root = roots_[space];
  root.space = space;
  return &root;
}

PrefixNode* PrefixTree::find_root(const PrefixSpace& space) {
  auto match = roots_.find(space);
  return match == roots_.end() ? &nowhere_ : &match->second;
}

void PrefixTree::unpin(PrefixNode& node) {
  --node.pins;
  prune(&node);
}

PrefixNode* PrefixTree::child(PrefixNode& parent, const int32_t* tokens, int64_t n) const {
  auto it = parent.children.find(std::vector<int32_t>(tokens, tokens + n));
  return it == parent.children.end() ? nullptr : it->second.get();
}

PrefixTree::Match PrefixTree::match(const PrefixSpace& space, const int32_t* tokens, int64_t n) {
  Match match;
  match.node = find_root(space);
  while (match.tokens + page_size_ <= n) {
    PrefixNode* next = child(*match.node, tokens + match.tokens, page_size_);
    if (next == nullptr) break;
    match.node = next;
    match.tokens += page_size_;
  }
  std::tie(match.half, match.half_tokens) =
      longest_match(*match.node, tokens + match.tokens, std::min(page_size_, n - match.tokens));
  if (match.half && usable(match.node, match.tokens + match.half_tokens, match.half)) return match;
  match.half = nullptr;
  match.half_tokens = 0;
  while (!usable(match.node, match.tokens, nullptr)) {
    match.node = match.node->parent;
    match.tokens -= page_size_;
  }
  return match;
}

// Whether the tree has the complete state after `tokens` tokens. The last page is always required,
// because a sequence that continues here takes it.
bool PrefixTree::usable(const PrefixNode* node, int64_t tokens, const PrefixNode* half) const {
  if (tokens == 0) return true;
  if (slots_ && (half || node->snapshot < 0)) return false;
  for (size_t group = 0; group < pools_.size(); ++group) {
    if (half && half->pages[group] < 0) return false;
    int64_t seen = windows_[group] == 0 ? 0 : std::max<int64_t>(0, tokens - windows_[group] + 1);
    int64_t end = half ? tokens / page_size_ * page_size_ : tokens;
    for (const PrefixNode* n = node; !n->is_root() && (n == node || end > seen); n = n->parent) {
      if (n->pages[group] < 0) return false;
      end -= page_size_;
    }
  }
  return true;
}

PrefixNode* PrefixTree::add(PrefixNode& parent, const int32_t* tokens, int64_t n,
                            const std::vector<int32_t>& pages) {
  auto node = std::make_unique<PrefixNode>();
  node->parent = &parent;
  node->tokens.assign(tokens, tokens + n);
  node->pages.assign(pools_.size(), -1);
  node->used = ++clock_;
  PrefixNode* added = node.get();
  const PrefixNode* half = half_of(parent, tokens, n);
  delist(parent);
  parent.children.emplace(added->tokens, std::move(node));
  enlist(parent);  // the parent is no leaf any more, but its pages and snapshot stay evictable
  for (size_t group = 0; group < pages.size(); ++group) {
    if (pages[group] < 0) continue;
    pools_[group]->share_with_tree(pages[group]);
    added->pages[group] = pages[group];
  }
  enlist(*added);
  if (half && !in_use(*half)) remove(*parent.children.at(half->tokens));
  return added;
}

void PrefixTree::give(PrefixNode& node, size_t group, int32_t page) {
  delist(node);
  pools_[group]->share_with_tree(page);
  node.pages[group] = page;
  enlist(node);
}

void PrefixTree::give_snapshot(PrefixNode& node, int32_t slot) {
  delist(node);
  node.snapshot = slot;
  enlist(node);
}

int32_t PrefixTree::take_snapshot(PrefixNode& node) {
  delist(node);
  const int32_t slot = std::exchange(node.snapshot, -1);
  enlist(node);
  return slot;
}

// Marks a node and its ancestors as used. The last page becomes the newest, because the next
// request continues at the prefix's end.
void PrefixTree::touch(PrefixNode& node) {
  uint64_t depth = 0;
  for (PrefixNode* n = &node; !n->is_root(); n = n->parent) ++depth;
  uint64_t time = clock_ += depth;
  for (PrefixNode* n = &node; !n->is_root(); n = n->parent) {
    delist(*n);
    n->used = time--;
    enlist(*n);
  }
}

void PrefixTree::enlist(PrefixNode& node) {
  if (node.is_root()) return;
  const std::pair<uint64_t, PrefixNode*> entry{node.used, &node};
  if (node.children.empty()) leaves_.insert(entry);
  if (node.snapshot >= 0) snapshots_.insert(entry);
  for (size_t group = 0; group < pools_.size(); ++group) {
    if (windows_[group] > 0 && node.pages[group] >= 0) windowed_[group].insert(entry);
  }
}

void PrefixTree::delist(PrefixNode& node) {
  const std::pair<uint64_t, PrefixNode*> entry{node.used, &node};
  leaves_.erase(entry);
  if (slots_) snapshots_.erase(entry);
  for (size_t group = 0; group < pools_.size(); ++group) {
    if (windows_[group] > 0) windowed_[group].erase(entry);
  }
}

bool PrefixTree::in_use(const PrefixNode& node) const {
  if (!node.children.empty() || node.pins > 0) return true;
  for (size_t group = 0; group < pools_.size(); ++group) {
    int32_t page = node.pages[group];
    if (page >= 0 && pools_[group]->references(page) > 1) return true;
  }
  return false;
}

void PrefixTree::remove(PrefixNode& leaf) {
  PrefixNode* parent = leaf.parent;
  detach(leaf);
  prune(parent);
}

// Removes leaves without pages and pins, and their ancestors that become such leaves.
void PrefixTree::prune(PrefixNode* node) {
  while (node->children.empty() && node->pins == 0) {
    if (node->is_root()) {
      if (node != &nowhere_) roots_.erase(PrefixSpace(static_cast<Root*>(node)->space));
      return;
    }
    if (!holds_nothing(*node)) return;
    PrefixNode* parent = node->parent;
    detach(*node);
    node = parent;
  }
}

void PrefixTree::detach(PrefixNode& leaf) {
  if (on_remove) on_remove(leaf);
  delist(leaf);
  for (size_t group = 0; group < pools_.size(); ++group) {
    if (leaf.pages[group] >= 0) pools_[group]->release_from_tree(leaf.pages[group]);
  }
  if (leaf.snapshot >= 0) slots_->release(leaf.snapshot);
  PrefixNode& parent = *leaf.parent;
  // The key is copied first, because the node owns it.
  parent.children.erase(std::vector<int32_t>(leaf.tokens));
  enlist(parent);
}

void PrefixTree::drop_page(PrefixNode& node, size_t group) {
  delist(node);
  pools_[group]->release_from_tree(std::exchange(node.pages[group], -1));
  enlist(node);
  prune(&node);
}

bool PrefixTree::evict(size_t group) {
  for (const auto& [used, node] : windowed_[group]) {
    if (pools_[group]->references(node->pages[group]) > 1) continue;
    drop_page(*node, group);
    return true;
  }
  for (const auto& [used, leaf] : leaves_) {
    if (leaf->pages[group] < 0 || in_use(*leaf)) continue;
    remove(*leaf);
    return true;
  }
  return false;
}

// Evicts the least recently used snapshot, but spares a few where several prefixes continue, such
// as a system prompt: running requests make newer snapshots all the time, and their own loss costs
// one request alone.
bool PrefixTree::evict_snapshot() {
  constexpr int kSpared = 8;
  if (snapshots_.empty()) return false;
  auto victim = snapshots_.begin();
  for (int i = 0; i < kSpared && victim != snapshots_.end(); ++i, ++victim) {
    if (victim->second->children.size() <= 1) break;
  }
  if (victim == snapshots_.end()) victim = snapshots_.begin();
  PrefixNode& node = *victim->second;
  slots_->release(take_snapshot(node));
  prune(&node);
  return true;
}

void PrefixTree::clear() {
  for (bool removed = true; removed;) {
    removed = false;
    for (const auto& [used, leaf] : leaves_) {
      if (in_use(*leaf)) continue;
      remove(*leaf);
      removed = true;
      break;
    }
  }
}

int64_t PrefixTree::idle(size_t group) const { return pools_[group]->idle(); }

}  // namespace wherry
