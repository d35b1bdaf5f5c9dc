// Where pages of the cache go when they leave memory, and come back from: a folder
// (disk/disk_store.h).
#ifndef WHERRY_ENGINE_CACHE_BLOCK_STORE_H_
#define WHERRY_ENGINE_CACHE_BLOCK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cache/chain_key.h"

namespace wherry {

struct BlockStoreStats {
  uint64_t saved = 0;    // written
  uint64_t dropped = 0;  // not written: the queue was full, or writing is off
  uint64_t loaded = 0;
  uint64_t refused = 0;  // found damaged or foreign, and removed
  uint64_t evicted = 0;  // by this store, to make room
  uint64_t bytes = 0;    // in use by all who share the store, as last seen
  std::string problem;   // why nothing can be written at the moment; empty: it can
};

// Blocks of one size, each a page of all layers as opaque bytes, named by what it depends on.
// Thread-safe. A cache: any block may be gone at any time, no call fails, and none but load waits
// for a disk.
class BlockStore {
 public:
  virtual ~BlockStore() = default;  // saves what is queued first

  // Whether load would find a block. Cheap: a system call at most.
  virtual bool has(const ChainKey& key) = 0;
  // These blocks will be loaded soon, in this order.
  virtual void prefetch(const ChainKey* keys, size_t n) = 0;
  // Reads the block of this key whose page holds these tokens to out [block_bytes]. False: there is
  // none, or it was not what it should be (then it is removed); `out` is undefined.
  virtual bool load(const ChainKey& key, const int32_t* tokens, size_t n, void* out) = 0;
  // Queues a block. `read` is called once with [block_bytes] to fill, before save returns, or not
  // at all: if the block is there already, or (then save is false) there is no room in the queue.
  virtual bool save(const ChainKey& key, const int32_t* tokens, size_t n,
                    const std::function<void(void*)>& read) = 0;
  // These blocks have been of use, in memory or from here: they are the last to be evicted. Of
  // blocks touched in one call the last of a chain go first, so call it with all of a request's
  // chain when the request ends: blocks are saved and loaded with the beginning first, which is
  // then the oldest.
  virtual void touch(const ChainKey* keys, size_t n) = 0;
  // Waits until everything queued is done.
  virtual void flush() = 0;

  virtual BlockStoreStats stats() const = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_BLOCK_STORE_H_
