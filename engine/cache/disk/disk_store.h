// Blocks in a folder (block_folder.h), written by a thread of their own.
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
  std::string folder;             // made if there is none
  uint64_t max_bytes = 1 << 30;   // of all blocks in it, whichever process wrote them
  size_t block_bytes = 0;         // of one block
  size_t queue_bytes = 64 << 20;  // blocks that wait to be written; a few, however large they are
  // A folder that could not be written is tried again: a full disk may have room later.
  std::chrono::milliseconds retry{60000};
};

// Where the folder cannot be used, nothing is found and nothing saved, and stats say why.
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
  // From save() until it is written.
  struct Pending {
    BlockLabel label;
    Buffer file;          // header, block
    int64_t time = 0;     // of save(), wall_clock
    bool filled = false;  // the block is there
  };
  struct Touch {
    ChainKey key;
    int64_t time;
  };

  std::shared_ptr<Pending> reserve(const BlockLabel& label);  // null: no room, or pending already
  void forget(const std::shared_ptr<Pending>& block);         // its buffer is free again
  bool has_work() const { return !queue_.empty() || !ahead_.empty() || !touches_.empty(); }
  void run();
  void work(Lock& lock);  // one piece; gives up the lock meanwhile
  void write_next(Lock& lock);
  void set_problem(const std::string& reason);

  const DiskStoreOptions options_;
  const size_t capacity_;  // blocks in pending_
  BlockFolder folder_;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable work_, idle_;
  std::unordered_map<ChainKey, std::shared_ptr<Pending>, ChainKeyHash> pending_;
  std::deque<std::shared_ptr<Pending>> queue_;  // of them, those that are filled
  std::vector<Buffer> buffers_;                 // to use again
  std::deque<ChainKey> ahead_;
  std::deque<Touch> touches_;
  BlockStoreStats stats_;
  Clock::time_point off_until_{};
  bool busy_ = true;  // the thread: with the first walk, at the beginning
  bool closing_ = false;

  std::thread thread_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_DISK_STORE_H_
