// One process, and one thread of it, at a time; and a number that they keep between them.
#ifndef WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_
#define WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>

namespace wherry {

// Holds an advisory lock (flock: it goes with its process) on a file, which is made if there is
// none.
class FolderLock {
 public:
  // Throws WHERRY_INTERNAL where the file cannot be made, or another has held it for seconds.
  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Nothing where the file is new or damaged.
  std::optional<uint64_t> number() const;
  void set_number(uint64_t value);  // throws WHERRY_INTERNAL

 private:
  const std::string path_;
  int fd_ = -1;
};

// Whether the file can be made and locked at all; another may have the lock now. Throws
// WHERRY_INTERNAL.
void check_lock(const std::string& path);

// Locks if nobody else has.
bool try_lock(int fd);
// Also gives up what a forked child has inherited.
void unlock_and_close(int fd);

// Throws WHERRY_INTERNAL with errno's text. Name folders, not files of a moment: whoever tells such
// reasons keeps them all.
[[noreturn]] void fail_on(const std::string& path, const char* action);

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_
