#include "cache/kv_cache.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace wherry {

namespace {

// Returns the most pages of a group with a window that the next step of one sequence attends to.
int64_t live_pages(const GroupSpec& group, const KvCacheConfig& config, int64_t page_size) {
  return pages_for(group.window + config.chunk, page_size) + 1;
}

// Returns the number of pages of a group with a window: the pages of all sequences, and as many
// again for cached prefixes.
int64_t pages_of(const GroupSpec& group, const KvCacheConfig& config, int64_t page_size) {
  int64_t all = config.kv_tokens / page_size;
  if (group.window == 0) return all;
  return std::min(all, 2 * config.sequences * live_pages(group, config, page_size));
}

std::vector<std::unique_ptr<PagePool>> make_pools(const Metadata& metadata,
                                                  const KvCacheConfig& config) {
  std::vector<std::unique_ptr<PagePool>> pools;
  for (const GroupSpec& group : metadata.groups) {
    int64_t pages = pages_of(group, config, metadata.page_size);
    pools.push_back(std::make_unique<PagePool>(static_cast<int32_t>(pages)));
  }
  return pools;
}

std::vector<PagePool*> pointers(const std::vector<std::unique_ptr<PagePool>>& pools) {
  std::vector<PagePool*> result;
  for (const auto& pool : pools) result.push_back(pool.get());
  return result;
}

std::vector<int64_t> windows_of(const Metadata& metadata) {
  std::vector<int64_t> windows;
  for (const GroupSpec& group : metadata.groups) windows.push_back(group.window);
  return windows;
}

int64_t bytes_of(const StateSpec& spec) {
  return spec.layers * tensor_bytes(spec.dtype, spec.shape);
}

// Returns the number of slots: one for each sequence, snapshots that take at most a quarter of the
// bytes of the pages, but always a few, and those for states before draft tokens.
int64_t slots_of(const Metadata& metadata, const KvCacheConfig& config) {
  constexpr int64_t kFewest = 2;
  int64_t slot = 0, pages = 0;
  for (const StateSpec& spec : metadata.state) {
    if (spec.recurrent) {
      slot += bytes_of(spec);
    } else {
      pages += bytes_of(spec) * pages_of(metadata.groups[spec.group], config, metadata.page_size);
    }
  }
  int64_t snapshots = slot > 0 ? pages / kSnapshotShare / slot : 2 * config.sequences;
  // More snapshots than pages would be of no use.
  snapshots = std::min(snapshots, config.kv_tokens / metadata.page_size);
  const int64_t spare = config.drafts ? std::min(config.sequences, kSpareSlots) : 0;
  return config.sequences + spare + std::max(kFewest, snapshots);
}

// Whether prefixes of this model can be shared. An encoder-decoder's prefix also depends on its
// source, and with bidirectional attention later tokens change the keys and values of earlier ones.
bool can_share(const Metadata& metadata) {
  bool cross = std::any_of(metadata.groups.begin(), metadata.groups.end(),
                           [](const GroupSpec& group) { return group.cross; });
  return !cross && !metadata.bidirectional && (!metadata.groups.empty() || metadata.recurrent());
}

}  // namespace

KvCache::KvCache(const Metadata& metadata, const KvCacheConfig& config)
    : page_size_(metadata.page_size),
      groups_(metadata.groups),
      config_(config),
      prefix_cache_(config.prefix_cache && can_share(metadata)),
      pools_(make_pools(metadata, config)),
      slots_(metadata.recurrent()
                 ? std::make_unique<PagePool>(static_cast<int32_t>(slots_of(metadata, config)))
                 : nullptr),
      tree_(pointers(pools_), windows_of(metadata), slots_.get(), metadata.page_size) {}

std::vector<int64_t> KvCache::pages() const {
  std::vector<int64_t> pages;
  for (const auto& pool : pools_) pages.push_back(pool->total());
  return pages;
}

std::vector<std::vector<int32_t>> KvCache::free_pages() const {
  std::vector<std::vector<int32_t>> pages;
  for (const auto& pool : pools_) pages.push_back(pool->free_pages());
  return pages;
}

int64_t KvCache::lacking(int64_t tokens, int64_t source) const {
  for (size_t group = 0; group < groups_.size(); ++group) {
    const GroupSpec& spec = groups_[group];
    int64_t needed = pages_for(spec.cross ? source : tokens, page_size_);
    if (spec.window > 0) {
      // The number of pages that a row attends to, at any offset; the last full page stays until
      // the next page is full.
      int64_t seen = std::max<int64_t>(2, pages_for(spec.window - 1, page_size_) + 1);
      needed = std::min(needed, seen);
    }
    if (needed > pools_[group]->total()) return needed;
  }
  return 0;
}

bool KvCache::has_room(int64_t pages) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const PagePool& pool = *pools_[g];
    int64_t needed = std::min<int64_t>(pages, pool.total());
    if (groups_[g].window > 0) {
      needed = std::min(needed, live_pages(groups_[g], config_, page_size_));
    }
    if (pool.available() + pool.idle() < needed) return false;
  }
  return true;
}

// ---- start of a request: lookup and attachment of a cached prefix ----

KvCache::Cached KvCache::cached(const PrefixSpace& space, const std::vector<int32_t>& tokens,
                                int64_t most) {
  Cached cached;
  if (!prefix_cache_) return cached;
  PrefixTree::Match match = tree_.match(space, tokens.data(), most);
  cached.tokens = match.tokens;
  if (pools_.empty()) return cached;
  for (PrefixNode* node = match.node; !node->is_root(); node = node->parent) {
    int32_t page = node->pages[0];
    if (page >= 0 && pools_[0]->references(page) > 1) ++cached.in_use;
  }
  return cached;
}

int64_t KvCache::known(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t most) {
  if (!prefix_cache_ || !slots_) return 0;
  int64_t known = 0;
  for (PrefixNode* node = tree_.find_root(space); known + page_size_ <= most; known += page_size_) {
    node = tree_.child(*node, tokens.data() + known, page_size_);
    if (node == nullptr) break;
  }
  return known;
}

int64_t KvCache::attach(SequenceState& sequence, const PrefixSpace& space,
                        const std::vector<int32_t>& tokens, int64_t most, StateChanges& changes) {
  sequence = SequenceState();
  sequence.pages.resize(groups_.size());
  if (slots_) {
    while (slots_->available() == 0 && tree_.evict_snapshot()) {
    }
    sequence.slot = slots_->take();
  }
  PrefixTree::Match match;
  if (prefix_cache_) {
    match = tree_.match(space, tokens.data(), most);
    adopt(sequence, match);
  }
  if (slots_) {
    changes.slots.push_back({match.tokens > 0 ? match.node->snapshot : -1, sequence.slot});
  }
  if (!match.half) return match.tokens;
  // This sequence continues the half page with other tokens, so it gets a copy. The source page is
  // pinned until then, because taking a page may evict the prefix that the match belongs to.
  const std::vector<int32_t> from = match.half->pages;
  for (size_t g = 0; g < from.size(); ++g) pools_[g]->share(from[g]);
  bool taken = true;
  for (size_t g = 0; g < from.size() && taken; ++g) taken = take(g, sequence.pages[g]);
  for (size_t g = 0; g < from.size(); ++g) {
    if (taken) changes.pages.push_back({static_cast<int>(g), from[g], sequence.pages[g].back()});
    pools_[g]->release(from[g]);
  }
  return taken ? match.tokens + match.half_tokens : match.tokens;
}

// Takes the pages of a match, from the first one within the window on. It always takes the last
// one, which also protects the node from removal.
void KvCache::adopt(SequenceState& sequence, const PrefixTree::Match& match) {
  pin(sequence, match.node->is_root() ? nullptr : match.node);
  sequence.committed = match.tokens / page_size_;
  auto count = static_cast<size_t>(sequence.committed);
  for (std::vector<int32_t>& pages : sequence.pages) pages.assign(count, -1);
  int64_t seen_from = match.tokens + match.half_tokens;
  for (PrefixNode* node = match.node; !node->is_root(); node = node->parent) {
    --count;
    int64_t end = static_cast<int64_t>(count + 1) * page_size_;
    for (size_t g = 0; g < groups_.size(); ++g) {
      bool behind = groups_[g].window > 0 && end <= seen_from - groups_[g].window + 1;
      if ((behind && node != match.node) || node->pages[g] < 0) continue;
      pools_[g]->share(node->pages[g]);
      sequence.pages[g][count] = node->pages[g];
    }
  }
  tree_.touch(*match.node);
}

void KvCache::pin(SequenceState& sequence, PrefixNode* node) {
  if (node) tree_.pin(*node);
  if (sequence.node) tree_.unpin(*sequence.node);
  sequence.node = node;
}

bool KvCache::take(size_t group, std::vector<int32_t>& pages) {
  PagePool& pool = *pools_[group];
  if (pool.available() == 0 && !tree_.evict(group)) return false;
  if (pool.available() == 0) return false;
  // reserve() may throw, so it precedes take(), or the page would leak.
  pages.reserve(pages.size() + 1);
  pages.push_back(pool.take());
  return true;
}

bool KvCache::extend(SequenceState& sequence, size_t group, int64_t tokens, int64_t source) {
  auto needed = static_cast<size_t>(pages_for(groups_[group].cross ? source : tokens, page_size_));
  while (sequence.pages[group].size() < needed) {
    if (!take(group, sequence.pages[group])) return false;
  }
  return true;
}

bool KvCache::reserve(SequenceState& sequence, int64_t tokens, int64_t source) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!extend(sequence, g, tokens, source)) return false;
  }
  return true;
}

bool KvCache::reserve_ahead(SequenceState& sequence, int64_t tokens, int64_t source) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].window == 0 && !extend(sequence, g, tokens, source)) return false;
  }
  return true;
}

int64_t KvCache::most_rows(int64_t computed) const {
  int64_t most = INT64_MAX;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].window == 0) continue;
    int64_t end = (behind_window(g, computed) + pools_[g]->total()) * page_size_;
    most = std::min(most, end - computed);
  }
  return most;
}

// ---- growth of a request: full pages enter the prefix tree ----

void KvCache::commit(SequenceState& sequence, const TokenSpan& span) {
  if (prefix_cache_) {
    while ((sequence.committed + 1) * page_size_ <= span.computed) add_page(sequence, span);
  }
  drop_behind_windows(sequence, span.computed);
}

// Adds the sequence's next whole page to the tree, or replaces it by the tree's equal page.
void KvCache::add_page(SequenceState& sequence, const TokenSpan& span) {
  if (sequence.node == nullptr) pin(sequence, tree_.root(span.space));
  auto at = static_cast<size_t>(sequence.committed);
  const int32_t* tokens = span.tokens.data() + sequence.committed * page_size_;
  std::vector<int32_t> own;
  for (const auto& pages : sequence.pages) own.push_back(pages[at]);
  PrefixNode* node = tree_.child(*sequence.node, tokens, page_size_);
  if (node == nullptr) {
    node = tree_.add(*sequence.node, tokens, page_size_, own);
  } else {
    for (size_t g = 0; g < own.size(); ++g) {
      int32_t& page = sequence.pages[g][at];
      if (page < 0 || page == node->pages[g]) continue;
      if (node->pages[g] < 0) {
        tree_.give(*node, g, page);
      } else {
        pools_[g]->share(node->pages[g]);
        pools_[g]->release(page);
        page = node->pages[g];
      }
    }
  }
  pin(sequence, node);
  ++sequence.committed;
}

// Counts the pages that no row after `computed` tokens attends to. The last whole page does not
// count: it marks the sequence's place in the tree, and sharing starts with it.
int64_t KvCache::behind_window(size_t group, int64_t computed) const {
  int64_t gone = (computed - groups_[group].window + 1) / page_size_;
  return std::max<int64_t>(0, std::min(gone, computed / page_size_ - 1));
}

void KvCache::drop_behind_windows(SequenceState& sequence, int64_t computed) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].window == 0) continue;
    std::vector<int32_t>& pages = sequence.pages[g];
    int64_t gone = behind_window(g, computed);
    for (int64_t i = std::min<int64_t>(gone, static_cast<int64_t>(pages.size())); i-- > 0;) {
      int32_t& page = pages[static_cast<size_t>(i)];
      if (page < 0) break;  // pages before this one are free already
      pools_[g]->release(page);
      page = -1;
    }
  }
}

// Returns a slot for a snapshot: the sequence's own moving one, a free one, or that of the least
// recently used snapshot; -1 if there is none.
int32_t KvCache::take_slot(SequenceState& sequence) {
  // The tree may have evicted the moving snapshot and given its node another one.
  PrefixNode* node = std::exchange(sequence.moving, nullptr);
  if (node && node->snapshot == sequence.moving_slot) return tree_.take_snapshot(*node);
  if (slots_->available() == 0 && !tree_.evict_snapshot()) return -1;
  return slots_->take();
}

void KvCache::snapshot(SequenceState& sequence, StateChanges& changes, bool keep) {
  PrefixNode* node = sequence.node;
  if (!slots_ || !prefix_cache_ || node == nullptr || node->is_root() || node->snapshot >= 0)
    return;
  const int32_t slot = take_slot(sequence);
  if (slot < 0) return;
  changes.slots.push_back({sequence.slot, slot});
  tree_.give_snapshot(*node, slot);
  if (keep) return thin_out(node);
  sequence.moving = node;
  sequence.moving_slot = slot;
}

// Drops snapshots before `node` if there are many on its path, so that a long conversation does not
// fill all slots: those that cost the fewest tokens to compute again, relative to their distance
// from the end, where the next requests are most likely to continue. Snapshots where conversations
// part stay.
void KvCache::thin_out(PrefixNode* node) {
  constexpr size_t kMost = 4;
  struct Snapshot {
    PrefixNode* node;
    int64_t distance;  // pages before the newest snapshot
  };
  std::vector<Snapshot> snapshots;  // the deepest first
  int64_t depth = 0;
  for (PrefixNode* n = node; !n->is_root(); n = n->parent, ++depth) {
    if (n->snapshot >= 0) snapshots.push_back({n, depth});
  }
  while (snapshots.size() > kMost) {
    size_t worst = 0;
    double least = 0;
    for (size_t i = 1; i < snapshots.size(); ++i) {
      int64_t before = i + 1 < snapshots.size() ? snapshots[i + 1].distance : depth;
      double cost = static_cast<double>(before - snapshots[i].distance) /
                    static_cast<double>(snapshots[i].distance);
      if (snapshots[i].node->children.size() > 1 || (worst != 0 && cost >= least)) continue;
      worst = i;
      least = cost;
    }
    if (worst == 0) return;
    slots_->release(tree_.take_snapshot(*snapshots[worst].node));
    snapshots.erase(snapshots.begin() + static_cast<std::ptrdiff_t>(worst));
  }
}

bool KvCache::take_spare(SequenceState& sequence) {
  if (!slots_ || sequence.spare >= 0) return true;
  if (slots_->available() == 0 && !tree_.evict_snapshot()) return false;
  sequence.spare = slots_->take();
  return true;
}

void KvCache::settle(SequenceState& sequence, bool back) {
  if (sequence.spare < 0) return;
  if (back) std::swap(sequence.slot, sequence.spare);
  slots_->release(std::exchange(sequence.spare, -1));
}

void KvCache::release(SequenceState& sequence, const TokenSpan& span, bool keep) {
  if (keep && prefix_cache_ && !sequence.pages.empty()) {
    commit(sequence, span);
    int64_t rest = span.computed - sequence.committed * page_size_;
    const int32_t* tokens = span.tokens.data() + sequence.committed * page_size_;
    if (rest > 0 && sequence.node == nullptr) pin(sequence, tree_.root(span.space));
    if (rest > 0 && !slots_ && !tree_.child(*sequence.node, tokens, rest)) {
      std::vector<int32_t> pages;
      auto last = static_cast<size_t>(sequence.committed);
      for (const auto& own : sequence.pages) pages.push_back(own[last]);
      tree_.add(*sequence.node, tokens, rest, pages);
    }
    if (sequence.node) tree_.touch(*sequence.node);
  }
  for (size_t g = 0; g < sequence.pages.size(); ++g) {
    for (int32_t page : sequence.pages[g]) {
      if (page >= 0) pools_[g]->release(page);
    }
  }
  if (sequence.slot >= 0) slots_->release(sequence.slot);
  if (sequence.spare >= 0) slots_->release(sequence.spare);
  pin(sequence, nullptr);
  sequence = SequenceState();
}

}  // namespace wherry
