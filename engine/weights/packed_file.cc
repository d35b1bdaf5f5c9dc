#include "weights/packed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "support/error.h"
#include "support/hash.h"

namespace wherry {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockAlignment = 256;
constexpr char kMagic[8] = {'W', 'H', 'P', 'A', 'C', 'K', '0', '1'};

struct Header {
  char magic[8];
  uint64_t key;
  uint64_t layout;
  uint64_t file_size;
  uint64_t checksum;  // of the fields above
};

Header make_header(uint64_t key, const PackedLayout& layout) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = key;
  header.layout = layout.hash();
  header.file_size = static_cast<uint64_t>(layout.file_size());
  header.checksum = Hash().bytes(&header, offsetof(Header, checksum)).value();
  return header;
}

[[noreturn]] void fail(const std::string& path, const char* action) {
  throw Error(WHERRY_INTERNAL, concat(path, ": cannot ", action, ": ", std::strerror(errno),
                                      " (the packed weights go to \"pack_dir\")"));
}

}  // namespace

int64_t PackedLayout::add(const std::string& description, int64_t nbytes) {
  int64_t offset = (end_ + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  end_ = offset + nbytes;
  hash_ = Hash().number(hash_).text(description).number(static_cast<uint64_t>(offset)).value();
  return offset;
}

std::string packed_path(const std::string& folder, uint64_t key) {
  static const char* kDigits = "0123456789abcdef";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[key >> shift & 15];
  return (fs::path(folder) / ("packed-" + digits + ".bin")).string();
}

std::shared_ptr<const MappedFile> open_packed(const std::string& path, uint64_t key,
                                              const PackedLayout& layout) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return nullptr;
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (file->size() != static_cast<size_t>(layout.file_size())) return nullptr;
  Header header = make_header(key, layout);
  return std::memcmp(file->data(), &header, sizeof header) == 0 ? file : nullptr;
}

PackedWriter::PackedWriter(const std::string& path, uint64_t key, const PackedLayout& layout)
    : path_(path) {
  static std::atomic<int> count{0};  // two engines of one process may write at once
  fs::path target(path);
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  temporary_ = (target.parent_path() / concat(".", target.filename().string(), ".", getpid(), ".",
                                              count.fetch_add(1), ".tmp"))
                   .string();
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail(temporary_, "create");
  try {
    if (ftruncate(fd_, layout.file_size()) != 0) fail(temporary_, "set the size");
    Header header = make_header(key, layout);
    write(0, &header, sizeof header);
  } catch (...) {
    close(fd_);
    unlink(temporary_.c_str());
    throw;
  }
}

PackedWriter::~PackedWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void PackedWriter::write(int64_t offset, const void* data, int64_t nbytes) {
  const char* p = static_cast<const char*>(data);
  while (nbytes > 0) {
    ssize_t written = pwrite(fd_, p, static_cast<size_t>(nbytes), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(temporary_, "write");
    p += written;
    offset += written;
    nbytes -= written;
  }
}

void PackedWriter::commit() {
  if (fsync(fd_) != 0) fail(temporary_, "flush");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "rename");
  close(fd_);
  fd_ = -1;
}

}  // namespace wherry
