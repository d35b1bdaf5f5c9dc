// A file while it is fetched: what has come lies beside its place until all of it is there.
#ifndef WHERRY_ENGINE_APP_FILES_PART_FILE_H_
#define WHERRY_ENGINE_APP_FILES_PART_FILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "app/files/descriptor.h"
#include "app/files/file_list.h"
#include "app/files/sha256.h"

namespace wherry::app {

// Throws DownloadError: WHERRY_NO_SPACE, else WHERRY_INVALID_ARGUMENT with the system's reason.
[[noreturn]] void fail_to_write(const std::string& path, int error);

// Bytes of a file; -1: there is none.
int64_t size_of(const std::string& path);

// Flushed to the disk under another name, then renamed.
void write_whole(const std::string& path, const std::string& content);

// Adds a file's bytes to `hash`, saying how many came; those that can be read.
void hash_file(const std::string& path, Sha256& hash, const std::function<void(int64_t)>& came);

class PartFile {
 public:
  // Its name has the content's hash: what came of another version is not continued.
  PartFile(const std::string& folder, const FileRecord& record);

  const std::string& path() const { return path_; }
  int64_t kept() const;  // bytes that are there

  // Reads what is there, calling go_on; from then on append() and finish(). Gives its bytes.
  int64_t open(const std::function<void()>& go_on);
  void append(const char* data, size_t n);
  // Flushes it to the disk. False: it is not what the manifest lists, and gone.
  bool finish();

 private:
  FileRecord record_;
  std::string path_;
  Descriptor file_;
  int64_t size_ = 0;
  Sha256 hash_;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_FILES_PART_FILE_H_
