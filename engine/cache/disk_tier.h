// Connects the prefix tree with a store that outlives the process: finds a prompt's pages in the
// store, restores them into memory, and saves the pages of finished requests.
#ifndef WHERRY_ENGINE_CACHE_DISK_TIER_H_
#define WHERRY_ENGINE_CACHE_DISK_TIER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cache/block_store.h"
#include "cache/kv_cache.h"
#include "model/model.h"

namespace wherry {

// The disk tier of the prefix cache, for models without windows or recurrent state: a block is one
// page of every group. Not thread-safe: the stepping thread uses it between steps; prefetch() and
// enqueue() may also run during a step because they read host memory alone.
class DiskTier {
 public:
  DiskTier(std::unique_ptr<BlockStore> store, const Model& model, Session& session, KvCache& cache);

  // Whether blocks can store the state of a model with this metadata.
  static bool suits(const Metadata& metadata);
  static size_t block_bytes(const Session& session, size_t groups);

  // Counts the stored whole pages of tokens[0..most), from page `from` on, and prefetches those
  // pages.
  int64_t prefetch(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t from,
                   int64_t most);

  // Reads n of the sequence's pages, from page `from` on, into the session; returns how many it
  // read.
  int64_t restore(const SequenceState& sequence, const PrefixSpace& space,
                  const std::vector<int32_t>& tokens, int64_t from, int64_t n);

  // Queues the pages of a finished request for saving, as far as the tree has its first `computed`
  // tokens.
  void enqueue(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t computed);
  // Saves at most `most` queued pages.
  void save(int64_t most);
  bool has_work() const { return !queue_.empty(); }
  void clear_queue() { queue_.clear(); }
  BlockStoreStats stats() const { return store_->stats(); }

 private:
  struct Finished {
    PrefixSpace space;
    std::vector<int32_t> tokens;
    int64_t next = 0;  // index of the next page to save
    std::vector<ChainKey> keys;
  };

  ChainKey root(const PrefixSpace& space) const;
  std::vector<ChainKey> keys(const PrefixSpace& space, const std::vector<int32_t>& tokens,
                             int64_t pages) const;
  bool save_next(Finished& finished);

  const std::unique_ptr<BlockStore> store_;
  Session& session_;
  KvCache& cache_;
  ChainRoot root_;
  std::vector<char> block_;
  std::deque<Finished> queue_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_TIER_H_
