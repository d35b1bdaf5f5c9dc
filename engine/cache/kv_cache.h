// Allocates the model's state to an engine's requests: pages of each group of layers, slots of
// recurrent state, and cached prefixes of finished requests. It does accounting on the host only;
// StateChanges lists the copies that the session must make on the device.
#ifndef WHERRY_ENGINE_CACHE_KV_CACHE_H_
#define WHERRY_ENGINE_CACHE_KV_CACHE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/page_pool.h"
#include "cache/prefix_tree.h"
#include "model/metadata.h"

namespace wherry {

struct KvCacheConfig {
  int64_t kv_tokens = 0;  // capacity in tokens of a group without a sliding window
  int64_t sequences = 0;  // maximum number of concurrent sequences
  int64_t chunk = 0;      // maximum number of rows in one step
  bool prefix_cache = true;
  bool drafts = false;  // whether requests verify draft tokens unless they say otherwise
};

// Copies that the session must make on the device, in this order, before the step that needs them.
struct StateChanges {
  struct PageCopy {
    int group;
    int32_t from, to;
  };
  struct SlotCopy {
    int32_t from;  // slot to copy; -1 clears the target
    int32_t to;
  };
  std::vector<PageCopy> pages;
  std::vector<SlotCopy> slots;

  bool empty() const { return pages.empty() && slots.empty(); }
};

// The state (pages, slot, place in the tree) that one request owns.
struct SequenceState {
  // [groups] page ids in order; -1 for a page that the window has passed.
  std::vector<std::vector<int32_t>> pages;
  int32_t slot = -1;
  int32_t spare =
      -1;  // slot for the recurrent state before draft tokens; -1 outside of such a step
  PrefixNode* node = nullptr;  // pinned node of the last page that is in the tree; or null
  int64_t committed = 0;       // number of the sequence's pages in the tree
  // The node with the snapshot that moves with the sequence, and its slot; null if there is none.
  PrefixNode* moving = nullptr;
  int32_t moving_slot = -1;
};

// A request's tokens, and how many of them its state covers.
struct TokenSpan {
  const PrefixSpace& space;
  const std::vector<int32_t>& tokens;
  int64_t computed;  // number of leading tokens in the state
};

class KvCache {
 public:
  KvCache(const Metadata& metadata, const KvCacheConfig& config);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  // Returns the numbers of pages in each group, and of slots, which the session allocates.
  std::vector<int64_t> pages() const;
  // Returns the ids of the pages that are free now, [groups].
  std::vector<std::vector<int32_t>> free_pages() const;
  int64_t slots() const { return slots_ ? slots_->total() : 0; }

  // Checks whether a request of `tokens` tokens (and `source` encoder tokens) can ever fit. Returns
  // 0 if it can, else the pages that it would need at one time in a group that has fewer. In a
  // group with a window a request needs only the pages that a row attends to, because it returns
  // the pages that the window has passed.
  int64_t lacking(int64_t tokens, int64_t source) const;
  // Whether this number of pages of each group is free or can be evicted now; in a group with a
  // window, the pages that a step of one sequence needs.
  bool has_room(int64_t pages) const;

  // Gives an empty sequence the cached prefix of tokens[0..most); returns the prefix's length in
  // tokens.
  int64_t attach(SequenceState& sequence, const PrefixSpace& space,
                 const std::vector<int32_t>& tokens, int64_t most, StateChanges& changes);
  struct Cached {
    int64_t tokens = 0;  // cached tokens in whole pages
    int64_t in_use = 0;  // cached pages (first group) that a running request also uses
  };
  // Looks up the cached prefix of tokens[0..most) without taking its pages.
  Cached cached(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t most);

  // Returns how many tokens of tokens[0..most) have pages in the tree, although no snapshot allows
  // to continue there; 0 without recurrent state.
  int64_t known(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t most);

  // Allocates pages for `tokens` tokens and `source` encoder tokens. Returns false if there are not
  // enough pages; the sequence then keeps the pages that it got.
  bool reserve(SequenceState& sequence, int64_t tokens, int64_t source);
  // Allocates pages for tokens of later steps, with the result of reserve(). It skips groups with a
  // window, which return pages until then and allocate at that time.
  bool reserve_ahead(SequenceState& sequence, int64_t tokens, int64_t source);
  // Returns the most rows after `computed` tokens that one step has pages for if no other request
  // owns any: a step returns no pages before its end.
  int64_t most_rows(int64_t computed) const;

  // Adds the whole pages of span.computed computed tokens to the tree, which shares them from now
  // on, and frees pages that a window has passed. Call it after each step.
  void commit(SequenceState& sequence, const TokenSpan& span);
  // Copies the recurrent state after the last page to a slot from which other sequences can start.
  // keep: the snapshot stays here; otherwise the sequence's next one takes its place, so that a
  // sequence needs one slot however long it is.
  void snapshot(SequenceState& sequence, StateChanges& changes, bool keep);
  // Takes a slot for the recurrent state before draft tokens, if necessary that of the least
  // recently used snapshot. Returns false if there is none; true without recurrent state.
  bool take_spare(SequenceState& sequence);
  // Ends a step with draft tokens. back: one was rejected, so the sequence gets the spare slot.
  void settle(SequenceState& sequence, bool back);
  // Frees the sequence's state. keep: its pages stay in the tree until they are evicted.
  void release(SequenceState& sequence, const TokenSpan& span, bool keep);

  bool shares() const { return prefix_cache_; }
  void clear() { tree_.clear(); }
  int32_t total() const { return pools_.empty() ? 0 : pools_[0]->total(); }
  int32_t available() const { return pools_.empty() ? 0 : pools_[0]->available(); }
  int32_t free_slots() const { return slots_ ? slots_->available() : 0; }
  int32_t snapshots() const { return tree_.snapshots(); }
  int32_t idle() const { return pools_.empty() ? 0 : pools_[0]->idle(); }
  PrefixTree& tree() { return tree_; }
  int64_t page_size() const { return page_size_; }
  size_t groups() const { return groups_.size(); }
  bool recurrent() const { return slots_ != nullptr; }

 private:
  bool extend(SequenceState& sequence, size_t group, int64_t tokens, int64_t source);
  bool take(size_t group, std::vector<int32_t>& pages);
  int32_t take_slot(SequenceState& sequence);
  void thin_out(PrefixNode* node);
  void adopt(SequenceState& sequence, const PrefixTree::Match& match);
  void pin(SequenceState& sequence, PrefixNode* node);
  void add_page(SequenceState& sequence, const TokenSpan& span);
  void drop_behind_windows(SequenceState& sequence, int64_t computed);
  int64_t behind_window(size_t group, int64_t computed) const;

  const int64_t page_size_;
  const std::vector<GroupSpec> groups_;
  const KvCacheConfig config_;
  const bool prefix_cache_;
  std::vector<std::unique_ptr<PagePool>> pools_;
  std::unique_ptr<PagePool> slots_;
  // The tree must be declared after the pools, because its destructor returns pages to them.
  PrefixTree tree_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_KV_CACHE_H_
