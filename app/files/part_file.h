// A file during its download: the bytes go to a part file, which is renamed when it is complete.
#ifndef WHERRY_APP_FILES_PART_FILE_H_
#define WHERRY_APP_FILES_PART_FILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "app/files/descriptor.h"
#include "app/files/file_list.h"
#include "app/files/sha256.h"

namespace wherry::app {

// Throws DownloadError for a failed write: WHERRY_NO_SPACE, or WHERRY_INVALID_ARGUMENT with the
// system's message.
[[noreturn]] void fail_to_write(const std::string& path, int error);

// Returns the size of a file in bytes; -1 if it does not exist.
int64_t size_of(const std::string& path);

// Writes a file atomically: to a temporary name, flushed to disk, then renamed.
void write_file(const std::string& path, const std::string& content);

// Adds a file's readable bytes to `hash`; calls `came` with each number of bytes.
void hash_file(const std::string& path, Sha256& hash, const std::function<void(int64_t)>& came);

class PartFile {
 public:
  // Opens the part file of a record. Its name contains the content's hash, so a download of another
  // version starts anew.
  PartFile(const std::string& folder, const FileRecord& record);

  const std::string& path() const { return path_; }
  int64_t kept() const;  // bytes that an earlier download has written

  // Hashes the existing bytes, calling go_on at intervals, and returns their number. Call it before
  // append() and finish().
  int64_t open(const std::function<void()>& go_on);
  void append(const char* data, size_t n);
  // Flushes the part file to disk. If it does not match the manifest, deletes it and returns false.
  bool finish();

 private:
  FileRecord record_;
  std::string path_;
  Descriptor file_;
  int64_t size_ = 0;
  Sha256 hash_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_PART_FILE_H_
