#include "cache/disk/folder_lock.h"

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

files::File open_lock(const std::string& path) {
  files::File file(path, files::Open::kLock);
  if (!file) fail_on(path, "open");
  return file;
}

}  // namespace

void fail_on(const std::string& path, const char* action) {
  throw Error(WHERRY_INTERNAL, concat(path, ": cannot ", action, ": ", std::strerror(errno)));
}

void check_lock(const std::string& path) {
  files::File file = open_lock(path);
  if (file.try_lock()) return file.unlock();
  if (errno != EWOULDBLOCK) fail_on(path, "lock");
}

FolderLock::FolderLock(const std::string& path) : path_(path) {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    file_ = open_lock(path);
    while (!file_.try_lock()) {
      if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= deadline) {
        fail_on(path, "lock");
      }
      std::this_thread::sleep_for(kPause);
    }
    if (file_.is_named(path)) return;  // else a user has deleted the folder's files
    file_.unlock();
  }
}

FolderLock::~FolderLock() { file_.unlock(); }

std::optional<uint64_t> FolderLock::number() const {
  Record record{};
  if (!file_.read_at(&record, sizeof record, 0)) return std::nullopt;
  if (record.value != ~record.complement) return std::nullopt;
  return record.value;
}

void FolderLock::set_number(uint64_t value) {
  Record record{value, ~value};
  if (!file_.write_at(&record, sizeof record, 0)) fail_on(path_, "write");
}

}  // namespace wherry
