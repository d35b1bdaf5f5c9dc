// Implements BlockStore with a folder (block_folder.h) and a thread that writes blocks.
#ifndef WHERRY_ENGINE_CACHE_DISK_DISK_STORE_H_
#define WHERRY_ENGINE_CACHE_DISK_DISK_STORE_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cache/block_store.h"
#include "cache/disk/block_folder.h"

namespace wherry {

struct DiskStoreOptions {
  std::string folder;             // the store creates the folder if it is missing
  uint64_t max_bytes = 1 << 30;   // limit for all blocks in the folder, of all processes
  size_t block_bytes = 0;         // size of one block in bytes
  size_t queue_bytes = 64 << 20;  // limit for queued blocks; a few blocks are always allowed
  // How long to wait after a failed write before the next attempt: a full disk may have room later.
  std::chrono::milliseconds retry{60000};
};

// A block store on disk. If the folder cannot be used, nothing is found or saved, and
// stats().problem says why.
class DiskStore : public BlockStore {
 public:
  explicit DiskStore(const DiskStoreOptions& options);
  ~DiskStore() override;
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  bool has(const ChainKey& key) override;
  void prefetch(const ChainKey* keys, size_t n) override;
  bool load(const ChainKey& key, const int32_t* tokens, size_t n, void* out) override;
  bool save(const ChainKey& key, const int32_t* tokens, size_t n,
            const std::function<void(void*)>& read) override;
  void touch(const ChainKey* keys, size_t n) override;
  void flush() override;
  BlockStoreStats stats() const override;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Buffer {
    std::unique_ptr<char[]> data;
    size_t size = 0;  // bytes
  };
  // A block between save() and the end of its write.
  struct Pending {
    BlockLabel label;
    Buffer file;          // the header and the block's bytes
    int64_t time = 0;     // wall_clock() at the time of save()
    bool filled = false;  // true once the block's bytes are in `file`
  };
  struct Touch {
    ChainKey key;
    int64_t time;
  };

  // Reserves a place in the queue; returns null if the queue is full or the block is already
  // pending.
  std::shared_ptr<Pending> reserve(const BlockLabel& label);
  void forget(const std::shared_ptr<Pending>& block);  // frees the block's buffer for reuse
  bool has_work() const { return !queue_.empty() || !ahead_.empty() || !touches_.empty(); }
  void run();
  void work(Lock& lock);  // does one item of work; releases the lock during it
  void write_next(Lock& lock);
  void set_problem(const std::string& reason);

  const DiskStoreOptions options_;
  const size_t capacity_;  // upper bound on blocks in pending_
  BlockFolder folder_;

  mutable std::mutex mutex_;  // guards every field below
  std::condition_variable work_, idle_;
  std::unordered_map<ChainKey, std::shared_ptr<Pending>, ChainKeyHash> pending_;
  std::deque<std::shared_ptr<Pending>> queue_;  // the pending blocks that are filled
  std::vector<Buffer> buffers_;                 // free buffers to reuse
  std::deque<ChainKey> ahead_;
  std::deque<Touch> touches_;
  BlockStoreStats stats_;
  Clock::time_point off_until_{};
  bool busy_ = true;  // whether the thread is working; it starts with the first walk of the folder
  bool closing_ = false;

  std::thread thread_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_DISK_STORE_H_
