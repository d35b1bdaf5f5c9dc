#include "cache/disk/block_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "cache/disk/folder_lock.h"
#include "support/error.h"

namespace wherry {

namespace {

constexpr int64_t kSecond = 1000000000;  // nanoseconds
// Age difference of neighbouring blocks in a chain. A chain is useless without its beginning, so
// among blocks used at the same time eviction takes the last ones first: each counts as a little
// older than the one before it.
constexpr int64_t kDepthAge = 10000;    // nanoseconds
constexpr uint64_t kAllocation = 4096;  // bytes; file systems round file sizes up to a multiple
constexpr size_t kDigits = 64;          // hexadecimal digits of a key
constexpr char kBlockSuffix[] = ".block", kIncomingSuffix[] = ".tmp";

uint64_t allocated(uint64_t bytes) { return (bytes + kAllocation - 1) / kAllocation * kAllocation; }

bool all_in(const std::string& text, const char* characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string::npos;
}

// Returns the part of the name before the suffix, or "" if the name has another suffix.
std::string stem_of(const std::string& name, const std::string& suffix) {
  if (name.size() <= suffix.size()) return "";
  size_t stem = name.size() - suffix.size();
  return name.compare(stem, suffix.size(), suffix) == 0 ? name.substr(0, stem) : "";
}

bool is_block(const std::string& shard, const std::string& name) {
  std::string stem = stem_of(name, kBlockSuffix);
  return stem.size() == kDigits && all_in(stem, "0123456789abcdef") &&
         stem.compare(0, 2, shard) == 0;
}

bool is_incoming(const std::string& name) {
  std::string stem = stem_of(name, kIncomingSuffix);
  return stem.find('-') != std::string::npos && all_in(stem, "0123456789-");
}

// Calls `call` for each name in a folder; for no name if the folder is not readable.
void for_each_name(const std::string& folder, const std::function<void(const std::string&)>& call) {
  DIR* stream = opendir(folder.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) call(entry->d_name);
  closedir(stream);
}

timespec timespec_of(int64_t time) {
  timespec result{};
  result.tv_sec = static_cast<time_t>(time / kSecond);
  result.tv_nsec = static_cast<long>(time % kSecond);
  return result;
}

int64_t time_of(const struct stat& info) {
#if defined(__APPLE__)
  const timespec& time = info.st_mtimespec;
#else
  const timespec& time = info.st_mtim;
#endif
  return static_cast<int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

int64_t time_of_use(const ChainKey& key, int64_t time) { return time - kDepthAge * key.depth; }

void make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_on(path, "create");
}

void write_all(int fd, const char* data, size_t n, const std::string& path) {
  while (n > 0) {
    ssize_t written = ::write(fd, data, n);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_on(path, "write");
    data += written;
    n -= static_cast<size_t>(written);
  }
}

}  // namespace

int64_t wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * kSecond + now.tv_nsec;
}

struct BlockFolder::Found {
  std::string path;
  int64_t time;    // time of the last use, in nanoseconds
  uint64_t bytes;  // bytes allocated on the disk
};

// Locks the folder during the object's lifetime; creates the folder if it is missing.
class BlockFolder::Lock : public FolderLock {
 public:
  explicit Lock(const std::string& folder) : FolderLock(file_in(folder)) {}

  static std::string file_in(const std::string& folder) {
    std::error_code ignored;  // opening the lock file on the next line reports a failure
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
    make_folder(folder);
    make_folder(folder + "/incoming");
    return folder + "/lock";
  }
};

// Makes the path absolute, so that the process may change its working directory.
BlockFolder::BlockFolder(const std::string& path, uint64_t max_bytes) : max_bytes_(max_bytes) {
  std::error_code ignored;
  std::filesystem::path full = std::filesystem::absolute(path, ignored).lexically_normal();
  path_ = (full.has_filename() ? full : full.parent_path()).string();
}

void BlockFolder::check() const {
  check_lock(Lock::file_in(path_));
  if (access(incoming().c_str(), W_OK | X_OK) != 0) fail_on(incoming(), "write");
}

std::string BlockFolder::file_of(const ChainKey& key) const {
  std::string digits = key.hex();
  return path_ + "/" + digits.substr(0, 2) + "/" + digits + kBlockSuffix;
}

bool BlockFolder::has(const ChainKey& key) const { return access(file_of(key).c_str(), R_OK) == 0; }

BlockRead BlockFolder::read(const BlockLabel& label, void* out) const {
  std::string path = file_of(label.key);
  BlockRead result = read_block(path, label, out);
  // The sum of bytes is corrected at the next walk of the folder.
  if (result == BlockRead::kRefused) unlink(path.c_str());
  return result;
}

void BlockFolder::read_ahead(const ChainKey& key) const {
  int fd = ::open(file_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
#if defined(__APPLE__)
  struct stat info{};
  if (fstat(fd, &info) == 0) {
    radvisory all{0, static_cast<int>(info.st_size)};
    fcntl(fd, F_RDADVISE, &all);
  }
#elif defined(POSIX_FADV_WILLNEED)
  posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
#endif
  close(fd);
}

void BlockFolder::touch(const ChainKey& key, int64_t time) const {
  timespec used = timespec_of(time_of_use(key, time));
  timespec times[2] = {used, used};
  utimensat(AT_FDCWD, file_of(key).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

void BlockFolder::write(const ChainKey& key, const char* file, size_t bytes, int64_t time) {
  if (has(key)) return touch(key, time);  // another process wrote the block in the meantime
  std::string temporary;
  int fd = create_incoming(bytes, &temporary);
  try {
    write_all(fd, file, bytes, incoming());
    timespec used = timespec_of(time_of_use(key, time));
    timespec times[2] = {used, used};
    futimens(fd, times);
    std::string path = file_of(key);
    if (rename(temporary.c_str(), path.c_str()) != 0) {
      std::string shard = std::filesystem::path(path).parent_path().string();
      make_folder(shard);
      if (rename(temporary.c_str(), path.c_str()) != 0) fail_on(shard, "rename a file to one in");
    }
  } catch (...) {
    unlink(temporary.c_str());
    unlock_and_close(fd);
    throw;
  }
  unlock_and_close(fd);
}

// Creates a temporary file. Adds its bytes to the sum before they are written: a writer that is
// killed or fails leaves a sum that is too high until the next walk, but never too low.
int BlockFolder::create_incoming(size_t bytes, std::string* name) {
  static std::atomic<uint64_t> count{0};
  Lock lock(path_);
  uint64_t wanted = allocated(bytes);
  std::optional<uint64_t> in_use = lock.number();
  if (!in_use || *in_use + wanted > max_bytes_) in_use = make_room(wanted);
  if (*in_use + wanted > max_bytes_) {
    throw Error(WHERRY_INTERNAL, concat(path_, ": no room for a block of ", wanted,
                                        " bytes, the limit (\"cache_bytes\") is ", max_bytes_));
  }
  lock.set_number(*in_use + wanted);
  bytes_ = *in_use + wanted;
  int fd;
  do {  // tries further names, because processes in two containers may have the same id
    *name = concat(incoming(), "/", getpid(), "-", count.fetch_add(1), kIncomingSuffix);
    fd = ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) fail_on(incoming(), "create a file in");
  // Sets the file's size now, because walks count it.
  if (!try_lock(fd) || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    int reason = errno;
    unlink(name->c_str());
    unlock_and_close(fd);
    errno = reason;
    fail_on(incoming(), "set the size of a file in");
  }
  return fd;
}

void BlockFolder::sweep() {
  Lock lock(path_);
  bytes_ = make_room(0);
  lock.set_number(bytes_);
}

uint64_t BlockFolder::make_room(uint64_t wanted) {
  uint64_t total = remove_leftovers();
  std::vector<Found> blocks = find_blocks();
  for (const Found& block : blocks) total += block.bytes;
  if (total + wanted <= max_bytes_ || wanted > max_bytes_) return total;
  // Evicts more than needed, so that walks of the folder are rare.
  uint64_t goal = max_bytes_ - max_bytes_ / 16;
  std::sort(blocks.begin(), blocks.end(),
            [](const Found& a, const Found& b) { return a.time < b.time; });
  for (const Found& block : blocks) {
    if (total + wanted <= goal) break;
    if (unlink(block.path.c_str()) != 0 && errno != ENOENT) fail_on(path_, "remove a block in");
    total -= block.bytes;
    ++evicted_;
  }
  return total;
}

uint64_t BlockFolder::remove_leftovers() {
  uint64_t total = 0;
  for_each_name(incoming(), [&](const std::string& name) {
    if (!is_incoming(name)) return;
    std::string path = incoming() + "/" + name;
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    struct stat info{};
    if (try_lock(fd)) {
      unlink(path.c_str());  // the file's writer is gone
      unlock_and_close(fd);
      return;
    }
    if (fstat(fd, &info) == 0) total += allocated(static_cast<uint64_t>(info.st_size));
    close(fd);
  });
  return total;
}

std::vector<BlockFolder::Found> BlockFolder::find_blocks() const {
  std::vector<Found> blocks;
  for_each_name(path_, [&](const std::string& shard) {
    if (shard.size() != 2 || !all_in(shard, "0123456789abcdef")) return;
    for_each_name(path_ + "/" + shard, [&](const std::string& name) {
      if (!is_block(shard, name)) return;
      std::string path = path_ + "/" + shard + "/" + name;
      struct stat info{};
      if (lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return;
      blocks.push_back({path, time_of(info), allocated(static_cast<uint64_t>(info.st_size))});
    });
  });
  return blocks;
}

}  // namespace wherry
