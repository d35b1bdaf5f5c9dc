// Between the prefix tree and a store that outlives the process: which pages of a prompt are there,
// bringing them back, and keeping what requests left.
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

// For models all of whose layers see everything: a block is a page of every group. Not thread-safe:
// the stepping thread's, between steps, but for found() and remember(), which are host-side alone.
class DiskTier {
 public:
  DiskTier(std::unique_ptr<BlockStore> store, const Model& model, Session& session, KvCache& cache);

  // Whether the state of such a model can be kept in blocks.
  static bool suits(const Metadata& metadata);
  static size_t block_bytes(const Session& session, size_t groups);

  // How many whole pages of tokens[0..most), from page `from` on, are there. They will be wanted.
  int64_t found(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t from,
                int64_t most);

  // Reads pages of the sequence, from its page `from` on, into the session: how many of the n.
  int64_t restore(const SequenceState& sequence, const PrefixSpace& space,
                  const std::vector<int32_t>& tokens, int64_t from, int64_t n);

  // A request has ended: what the tree holds of its first `computed` tokens is to be kept.
  void remember(const PrefixSpace& space, const std::vector<int32_t>& tokens, int64_t computed);
  // Keeps at most so many of the pages that are to be kept.
  void save(int64_t most);
  bool has_work() const { return !ended_.empty(); }
  void forget_work() { ended_.clear(); }
  BlockStoreStats stats() const { return store_->stats(); }

 private:
  struct Ended {
    PrefixSpace space;
    std::vector<int32_t> tokens;
    int64_t next = 0;  // page
    std::vector<ChainKey> keys;
  };

  ChainKey root(const PrefixSpace& space) const;
  std::vector<ChainKey> keys(const PrefixSpace& space, const std::vector<int32_t>& tokens,
                             int64_t pages) const;
  bool save_next(Ended& ended);

  const std::unique_ptr<BlockStore> store_;
  Session& session_;
  KvCache& cache_;
  ChainRoot root_;
  std::vector<char> block_;
  std::deque<Ended> ended_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_TIER_H_
