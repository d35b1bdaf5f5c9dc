// The interface of the prefix cache's second tier, which stores evicted pages; disk/disk_store.h
// implements it with a folder.
#ifndef WHERRY_ENGINE_CACHE_BLOCK_STORE_H_
#define WHERRY_ENGINE_CACHE_BLOCK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cache/chain_key.h"

namespace wherry {

struct BlockStoreStats {
  uint64_t saved = 0;  // number of blocks written
  // Number of blocks not written because the queue was full or writing is off.
  uint64_t dropped = 0;
  uint64_t loaded = 0;
  uint64_t refused = 0;  // number of blocks removed because they were damaged or of another model
  uint64_t evicted = 0;  // number of blocks that this store evicted to make room
  uint64_t bytes = 0;    // bytes used by all processes that share the store, as last measured
  std::string problem;   // why writing fails at the moment; empty if it works
};

// Stores blocks of one size: the opaque bytes of one page in all layers, named by its chain key.
// Thread-safe. Any block may be evicted at any time, no call fails, and only load() waits for a
// disk.
class BlockStore {
 public:
  virtual ~BlockStore() = default;  // writes all queued blocks first

  // Whether load() would find the block; costs at most one system call.
  virtual bool has(const ChainKey& key) = 0;
  // Announces that load() will soon be called for these blocks, in this order.
  virtual void prefetch(const ChainKey* keys, size_t n) = 0;
  // Reads the block with this key and these tokens into out [block_bytes]. Returns false if no such
  // block exists, or if it is damaged (load then removes it); `out` is undefined then.
  virtual bool load(const ChainKey& key, const int32_t* tokens, size_t n, void* out) = 0;
  // Queues a block for writing. Before save() returns, it calls `read` once to fill [block_bytes];
  // it does not call `read` if the block exists already, nor if the queue is full, in which case
  // save() returns false.
  virtual bool save(const ChainKey& key, const int32_t* tokens, size_t n,
                    const std::function<void(void*)>& read) = 0;
  // Marks these blocks as the most recently used, whether the hit was in memory or in this store.
  // Among blocks of one call, eviction takes the end of a chain first. Call it with a request's
  // whole chain when the request ends: saving and loading start at the beginning of a chain, which
  // would leave the beginning the least recently used.
  virtual void touch(const ChainKey* keys, size_t n) = 0;
  // Waits until all queued blocks are written.
  virtual void flush() = 0;

  virtual BlockStoreStats stats() const = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_BLOCK_STORE_H_
