#include "cache/disk/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/error.h"

namespace wherry {

namespace {

// How long to wait for a lock. A process holds it for one walk of the folder at most, unless it is
// suspended.
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kPause{1};

struct Record {
  uint64_t value, complement;
};

// Whether the path still names the locked file: a user may have deleted the folder's files.
bool is_current(int fd, const std::string& path) {
  struct stat held{}, named{};
  return fstat(fd, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

int open_lock(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) fail_on(path, "open");
  return fd;
}

}  // namespace

bool try_lock(int fd) {
  int result;
  do {
    result = flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void unlock_and_close(int fd) {
  flock(fd, LOCK_UN);
  close(fd);
}

void fail_on(const std::string& path, const char* action) {
  throw Error(WHERRY_INTERNAL, concat(path, ": cannot ", action, ": ", std::strerror(errno)));
}

void check_lock(const std::string& path) {
  const int fd = open_lock(path);
  if (try_lock(fd)) return unlock_and_close(fd);
  const int reason = errno;
  close(fd);
  errno = reason;
  if (reason != EWOULDBLOCK) fail_on(path, "lock");
}

FolderLock::FolderLock(const std::string& path) : path_(path) {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    fd_ = open_lock(path);
    while (!try_lock(fd_)) {
      int reason = errno;
      if (reason == EWOULDBLOCK && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      close(fd_);
      errno = reason;
      fail_on(path, "lock");
    }
    if (is_current(fd_, path)) return;
    unlock_and_close(fd_);
  }
}

FolderLock::~FolderLock() { unlock_and_close(fd_); }

std::optional<uint64_t> FolderLock::number() const {
  Record record{};
  if (pread(fd_, &record, sizeof record, 0) != sizeof record) return std::nullopt;
  if (record.value != ~record.complement) return std::nullopt;
  return record.value;
}

void FolderLock::set_number(uint64_t value) {
  Record record{value, ~value};
  errno = EIO;  // needed because a short write sets no errno
  if (pwrite(fd_, &record, sizeof record, 0) != sizeof record) fail_on(path_, "write");
}

}  // namespace wherry
