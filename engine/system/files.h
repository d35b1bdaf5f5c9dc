// Files, folders and locks, as the operating system has them: files_posix.cc, files_windows.cc.
//
// Paths are UTF-8. What can fail returns false, or a file that is not open, and sets errno.
#ifndef WHERRY_ENGINE_SYSTEM_FILES_H_
#define WHERRY_ENGINE_SYSTEM_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace wherry::files {

enum class Open {
  kRead,     // an existing file
  kPlain,    // as kRead, but no symbolic link (ELOOP); does not wait for a pipe's writer
  kLock,     // to read and write; is created, for its owner alone, if it is missing
  kNew,      // to write; is created, for its owner alone (EEXIST if it is there)
  kReplace,  // to write; is created, or emptied
};

struct Info {
  uint64_t bytes;
  int64_t modified;  // nanoseconds since 1970
};

// An open file, which the destructor closes; the destructor and close() keep errno. Other programs
// may rename and remove it, on Windows, too.
class File {
 public:
  File() = default;
  File(const std::string& path, Open how);
  File(File&& other) noexcept : handle_(std::exchange(other.handle_, kClosed)) {}
  File& operator=(File&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~File() { close(); }

  explicit operator bool() const { return handle_ != kClosed; }
  void close();

  std::optional<Info> info() const;  // none if it is no regular file
  // Whether `path` names this file: another one may have taken its place.
  bool is_named(const std::string& path) const;

  // Read or write all of the bytes; false also if the file ends before.
  bool read_at(void* to, size_t bytes, uint64_t offset) const;
  bool write_at(const void* from, size_t bytes, uint64_t offset);
  bool set_size(uint64_t bytes);
  bool set_modified(int64_t time);  // nanoseconds since 1970
  bool flush();                     // to the disk
  // Asks the operating system to read the file into its page cache.
  void read_ahead() const;

  // Takes the file's lock without waiting (EWOULDBLOCK if another File holds it). It ends with the
  // process, and does not keep others from reading and writing.
  bool try_lock();
  // Releases the lock, also if a forked child has inherited the file.
  void unlock();

  intptr_t handle() const { return handle_; }  // a descriptor, or Windows' HANDLE

 private:
  static constexpr intptr_t kClosed = -1;
  intptr_t handle_ = kClosed;
};

std::optional<Info> info_of(const std::string& path);  // of no folder; of a link, not its file
bool set_modified(const std::string& path, int64_t time);
bool rename(const std::string& from, const std::string& to);  // replaces `to`
bool remove(const std::string& path);
bool make_folder(const std::string& path);  // for its owner alone; true if it is there
bool can_read(const std::string& path);
bool can_write_in(const std::string& folder);
// Calls `call` for each name in a folder; for no name if the folder is not readable.
void for_each_name(const std::string& folder, const std::function<void(const std::string&)>& call);

int64_t wall_clock();  // the system's clock, in nanoseconds since 1970
int process_id();

}  // namespace wherry::files

#endif  // WHERRY_ENGINE_SYSTEM_FILES_H_
