// A lock between processes and threads, and a number that the lock file stores.
#ifndef WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_
#define WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>

namespace wherry {

// An advisory lock on a file, which is created if missing (flock: the system releases it when the
// process ends).
class FolderLock {
 public:
  // Throws WHERRY_INTERNAL if the file cannot be created, or is locked for seconds.
  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Empty if the file is new or damaged.
  std::optional<uint64_t> number() const;
  void set_number(uint64_t value);  // throws WHERRY_INTERNAL

 private:
  const std::string path_;
  int fd_ = -1;
};

// Checks that the file can be created and locked at all; it may be locked now. Throws
// WHERRY_INTERNAL.
void check_lock(const std::string& path);

// Locks without waiting; false if it is locked.
bool try_lock(int fd);
// Also releases the lock if a forked child inherited the descriptor.
void unlock_and_close(int fd);

// Throws WHERRY_INTERNAL with errno's text. Pass folders, not temporary files: the engine stores
// every distinct reason.
[[noreturn]] void fail_on(const std::string& path, const char* action);

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_
