// What an engine's requests hold of the model's state: pages of each group of layers, slots of
// recurrent state, and the prefixes that ended requests left. Host-side accounting alone: what must
// happen on the device is written down in StateChanges, for the session.
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
  int64_t kv_tokens = 0;  // of a group without a window
  int64_t sequences = 0;  // at one time
  int64_t chunk = 0;      // rows of one step
  bool prefix_cache = true;
};

// Done in order, before the step that needs them.
struct StateChanges {
  struct PageCopy {
    int group;
    int32_t from, to;
  };
  struct SlotCopy {
    int32_t from;  // -1: clear
    int32_t to;
  };
  std::vector<PageCopy> pages;
  std::vector<SlotCopy> slots;

  bool empty() const { return pages.empty() && slots.empty(); }
};

// What one request holds.
struct SequenceState {
  std::vector<std::vector<int32_t>> pages;  // of each group, in order; -1 behind its window
  int32_t slot = -1;
  PrefixNode* node = nullptr;  // of the last page that is in the tree, which is held; null: none is
  int64_t committed = 0;       // pages that are
};

// The tokens that a request's state is made of.
struct TokenSpan {
  const PrefixSpace& space;
  const std::vector<int32_t>& tokens;
  int64_t computed;  // of them, in the state
};

class KvCache {
 public:
  KvCache(const Metadata& metadata, const KvCacheConfig& config);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  // Pages of each group, and slots, for the session.
  std::vector<int64_t> pages() const;
  int64_t slots() const { return slots_ ? slots_->total() : 0; }

  // Pages that a request of so many tokens (and the encoder's) takes at one time, of a group that
  // has not so many; 0: it can be held. Of a group with a window it takes those that a row sees;
  // the pages behind it go back.
  int64_t lacking(int64_t tokens, int64_t source) const;
  // Whether so many pages of each group can be had now, by forgetting idle prefixes; of a group
  // with a window those that a step of one sequence sees.
  bool has_room(int64_t pages) const;

  // Gives a sequence, which holds nothing yet, what is cached of tokens[0..most): how many tokens.
  int64_t attach(SequenceState& sequence, const PrefixSpace& space,
                 const std::vector<int32_t>& tokens, int64_t most, StateChanges& changes);
  struct Cached {
    int64_t tokens = 0;  // in whole pages
    int64_t in_use = 0;  // of these pages of the first group, those that a request holds
  };
  // What of tokens[0..most) is cached.
  Cached cached(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t most);

  // Takes pages until `tokens` fit, and the encoder's. False: there are not enough; the sequence
  // keeps those that it got.
  bool reserve(SequenceState& sequence, int64_t tokens, int64_t source);
  // The same for tokens that later steps compute: windowed groups, which give pages back meanwhile,
  // take theirs then.
  bool reserve_ahead(SequenceState& sequence, int64_t tokens, int64_t source);
  // Rows after `computed` tokens for which a step can have pages, if no other request holds any:
  // within a step none goes back.
  int64_t most_rows(int64_t computed) const;

  // The state of span.computed tokens is there: their whole pages may be shared from now on, and
  // those behind a window are given up.
  void commit(SequenceState& sequence, const TokenSpan& span);
  // Keeps the recurrent state behind the last page as a point that others may start from.
  void snapshot(SequenceState& sequence, StateChanges& changes);
  // Gives everything up. `keep`: what was computed stays in the tree while nobody needs its pages.
  void release(SequenceState& sequence, const TokenSpan& span, bool keep);

  bool shares() const { return prefix_cache_; }
  void clear() { tree_.clear(); }
  int32_t total() const { return pools_.empty() ? 0 : pools_[0]->total(); }
  int32_t available() const { return pools_.empty() ? 0 : pools_[0]->available(); }
  int32_t idle() const { return pools_.empty() ? 0 : pools_[0]->idle(); }
  PrefixTree& tree() { return tree_; }
  int64_t page_size() const { return page_size_; }
  size_t groups() const { return groups_.size(); }
  bool recurrent() const { return slots_ != nullptr; }

 private:
  bool extend(SequenceState& sequence, size_t group, int64_t tokens, int64_t source);
  bool take(size_t group, std::vector<int32_t>& pages);
  void adopt(SequenceState& sequence, const PrefixTree::Match& match);
  void stand(SequenceState& sequence, PrefixNode* node);
  void add_page(SequenceState& sequence, const TokenSpan& span);
  void drop_behind_windows(SequenceState& sequence, int64_t computed);
  int64_t behind_window(size_t group, int64_t computed) const;

  const int64_t page_size_;
  const std::vector<GroupSpec> groups_;
  const KvCacheConfig config_;
  const bool prefix_cache_;
  std::vector<std::unique_ptr<PagePool>> pools_;
  std::unique_ptr<PagePool> slots_;
  PrefixTree tree_;  // after the pools: it returns pages
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_KV_CACHE_H_
