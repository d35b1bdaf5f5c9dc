#if !defined(_WIN32)

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "system/files.h"

namespace wherry::files {

namespace {

constexpr int64_t kSecond = 1000000000;  // nanoseconds

int flags_of(Open how) {
  switch (how) {
    case Open::kRead:
      return O_RDONLY;
    case Open::kPlain:
      return O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
    case Open::kLock:
      return O_RDWR | O_CREAT | O_NOFOLLOW;
    case Open::kNew:
      return O_WRONLY | O_CREAT | O_EXCL;
    case Open::kReplace:
      break;
  }
  return O_WRONLY | O_CREAT | O_TRUNC;
}

Info info_from(const struct stat& status) {
#if defined(__APPLE__)
  const timespec& time = status.st_mtimespec;
#else
  const timespec& time = status.st_mtim;
#endif
  return {static_cast<uint64_t>(status.st_size),
          static_cast<int64_t>(time.tv_sec) * kSecond + time.tv_nsec};
}

timespec timespec_of(int64_t time) {
  timespec result{};
  result.tv_sec = static_cast<time_t>(time / kSecond);
  result.tv_nsec = static_cast<long>(time % kSecond);
  return result;
}

// Calls pread or pwrite until all bytes are done.
template <typename Bytes, typename Call>
bool all_of(Call call, int fd, Bytes* at, size_t bytes, uint64_t offset) {
  while (bytes > 0) {
    errno = EIO;  // for a short file, which sets none
    const ssize_t done = call(fd, at, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    bytes -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
  return true;
}

}  // namespace

File::File(const std::string& path, Open how)
    : handle_(
          ::open(path.c_str(), flags_of(how) | O_CLOEXEC, how == Open::kReplace ? 0644 : 0600)) {}

void File::close() {
  if (handle_ == kClosed) return;
  const int reason = errno;
  ::close(static_cast<int>(std::exchange(handle_, kClosed)));
  errno = reason;
}

std::optional<Info> File::info() const {
  struct stat status{};
  if (fstat(static_cast<int>(handle_), &status) != 0) return std::nullopt;
  if (S_ISREG(status.st_mode)) return info_from(status);
  errno = EISDIR;
  return std::nullopt;
}

bool File::is_named(const std::string& path) const {
  struct stat own{}, named{};
  return fstat(static_cast<int>(handle_), &own) == 0 && stat(path.c_str(), &named) == 0 &&
         own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

bool File::read_at(void* to, size_t bytes, uint64_t offset) const {
  return all_of(pread, static_cast<int>(handle_), static_cast<char*>(to), bytes, offset);
}

bool File::write_at(const void* from, size_t bytes, uint64_t offset) {
  return all_of(pwrite, static_cast<int>(handle_), static_cast<const char*>(from), bytes, offset);
}

bool File::set_size(uint64_t bytes) {
  return ftruncate(static_cast<int>(handle_), static_cast<off_t>(bytes)) == 0;
}

bool File::set_modified(int64_t time) {
  timespec times[2] = {timespec_of(time), timespec_of(time)};
  return futimens(static_cast<int>(handle_), times) == 0;
}

bool File::flush() { return fsync(static_cast<int>(handle_)) == 0; }

void File::read_ahead() const {
#if defined(__APPLE__)
  if (std::optional<Info> file_info = info()) {
    radvisory all{0, static_cast<int>(file_info->bytes)};
    fcntl(static_cast<int>(handle_), F_RDADVISE, &all);
  }
#elif defined(POSIX_FADV_WILLNEED)
  posix_fadvise(static_cast<int>(handle_), 0, 0, POSIX_FADV_WILLNEED);
#endif
}

bool File::try_lock() {
  int result;
  do {
    result = flock(static_cast<int>(handle_), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void File::unlock() {
  const int reason = errno;
  flock(static_cast<int>(handle_), LOCK_UN);
  errno = reason;
}

std::optional<Info> info_of(const std::string& path) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return std::nullopt;
  return info_from(status);
}

bool set_modified(const std::string& path, int64_t time) {
  timespec times[2] = {timespec_of(time), timespec_of(time)};
  return utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0;
}

bool rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0;
}

bool remove(const std::string& path) { return unlink(path.c_str()) == 0; }

bool make_folder(const std::string& path) {
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

bool can_read(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

bool can_write_in(const std::string& folder) { return access(folder.c_str(), W_OK | X_OK) == 0; }

void for_each_name(const std::string& folder, const std::function<void(const std::string&)>& call) {
  DIR* stream = opendir(folder.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) call(entry->d_name);
  closedir(stream);
}

int64_t wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * kSecond + now.tv_nsec;
}

int process_id() { return static_cast<int>(getpid()); }

}  // namespace wherry::files

#endif
