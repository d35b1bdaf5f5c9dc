// A lock file between processes and threads; the file also stores a number.
#ifndef WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_
#define WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "system/files.h"

namespace wherry {

// An advisory lock on a file (the system releases it when the process ends). Creates the file if it
// is missing.
class FolderLock {
 public:
  // Takes the lock. Throws WHERRY_INTERNAL if the file cannot be created, or stays locked for
  // seconds.
  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Returns the number in the lock file; none if the file is new or damaged.
  std::optional<uint64_t> number() const;
  void set_number(uint64_t value);  // writes the number; throws WHERRY_INTERNAL

 private:
  const std::string path_;
  files::File file_;
};

// Checks that the lock file can be created and locked; another process may hold the lock now.
// Throws WHERRY_INTERNAL.
void check_lock(const std::string& path);

// Throws WHERRY_INTERNAL with errno's text. path: name folders, not temporary files, because the
// engine stores every distinct reason.
[[noreturn]] void fail_on(const std::string& path, const char* action);

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_FOLDER_LOCK_H_
