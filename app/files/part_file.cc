#include "app/files/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <vector>

#include "app/files/download_error.h"

namespace wherry::app {

namespace {

constexpr size_t kBuffer = 1 << 20;  // bytes
constexpr size_t kOfHash = 16;  // number of hexadecimal digits of the hash in the part file's name

Descriptor open_to_write(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0644));
  if (!file.open()) fail_to_write(path, errno);
  return file;
}

void write_all(const Descriptor& file, const std::string& path, const char* data, size_t n) {
  while (n > 0) {
    const ssize_t written = ::write(file.get(), data, n);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to_write(path, errno);
    data += written;
    n -= static_cast<size_t>(written);
  }
}

}  // namespace

void fail_to_write(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  throw DownloadError(full ? int{WHERRY_NO_SPACE} : int{WHERRY_INVALID_ARGUMENT},
                      path + " cannot be written: " + std::generic_category().message(error));
}

int64_t size_of(const std::string& path) {
  struct stat match{};
  if (::stat(path.c_str(), &match) != 0 || !S_ISREG(match.st_mode)) return -1;
  return match.st_size;
}

void write_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".part";
  const Descriptor file = open_to_write(temporary);
  if (::ftruncate(file.get(), 0) != 0) fail_to_write(temporary, errno);
  write_all(file, temporary, content.data(), content.size());
  if (::fsync(file.get()) != 0) fail_to_write(temporary, errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail_to_write(path, errno);
}

void hash_file(const std::string& path, Sha256& hash, const std::function<void(int64_t)>& came) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return;
  std::vector<char> buffer(kBuffer);
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    hash.bytes(buffer.data(), static_cast<size_t>(n));
    came(n);
  }
}

PartFile::PartFile(const std::string& folder, const FileRecord& record)
    : record_(record),
      path_(folder + "/." + record.name + "." + record.sha256.substr(0, kOfHash) + ".part") {}

int64_t PartFile::kept() const {
  const int64_t size = size_of(path_);
  return size < 0 || size > record_.size ? 0 : size;
}

int64_t PartFile::open(const std::function<void()>& go_on) {
  hash_ = Sha256();
  size_ = 0;
  if (kept() > 0) {
    hash_file(path_, hash_, [&](int64_t n) {
      size_ += n;
      go_on();
    });
  }
  file_ = open_to_write(path_);
  if (::ftruncate(file_.get(), size_) != 0) fail_to_write(path_, errno);
  return size_;
}

void PartFile::append(const char* data, size_t n) {
  write_all(file_, path_, data, n);
  hash_.bytes(data, n);
  size_ += static_cast<int64_t>(n);
}

bool PartFile::finish() {
  if (::fsync(file_.get()) != 0) fail_to_write(path_, errno);
  file_.close();
  if (size_ == record_.size && hash_.finish() == record_.sha256) return true;
  std::remove(path_.c_str());
  return false;
}

}  // namespace wherry::app
