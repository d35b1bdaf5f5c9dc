#include "cache/disk/block_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/checksum.h"

namespace wherry {

namespace {

constexpr size_t kAlignment = 64;
constexpr char kMagic[8] = {'W', 'H', 'B', 'L', 'O', 'C', 'K', '1'};

struct Fields {
  char magic[8];
  uint64_t checksum;
  uint8_t key[32];
  uint64_t block_bytes;
  uint64_t tokens;
};
static_assert(sizeof(Fields) == kAlignment, "the format has no padding");
// The checksum covers the file from this offset on.
constexpr size_t kChecked = offsetof(Fields, key);

uint64_t checksum_of(const char* header, size_t header_bytes, const void* block,
                     size_t block_bytes) {
  return checksum64(header + kChecked, header_bytes - kChecked, checksum64(block, block_bytes));
}

// Writes the block file's header with a checksum of 0.
void write_header(const BlockLabel& label, char* header) {
  std::memset(header, 0, label.header_bytes());
  Fields fields{};
  std::memcpy(fields.magic, kMagic, sizeof kMagic);
  std::memcpy(fields.key, label.key.digest.data(), sizeof fields.key);
  fields.block_bytes = label.block_bytes;
  fields.tokens = label.tokens.size();
  std::memcpy(header, &fields, sizeof fields);
  if (label.tokens.empty()) return;
  std::memcpy(header + sizeof fields, label.tokens.data(), label.tokens.size() * sizeof(int32_t));
}

// Fills both parts from the file; returns false at the end of the file or on a read error.
bool read_parts(int fd, iovec parts[2]) {
  iovec* part = parts;
  int left = 2;
  while (left > 0) {
    ssize_t n = readv(fd, part, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    auto got = static_cast<size_t>(n);
    while (left > 0 && got >= part->iov_len) {
      got -= part->iov_len;
      ++part;
      --left;
    }
    if (left > 0) {
      part->iov_base = static_cast<char*>(part->iov_base) + got;
      part->iov_len -= got;
    }
  }
  return true;
}

bool is_wanted(int fd, const BlockLabel& label, void* out) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (static_cast<uint64_t>(info.st_size) != label.file_bytes()) return false;
  size_t header_bytes = label.header_bytes();
  std::vector<char> found(header_bytes), expected(header_bytes);
  iovec parts[2] = {{found.data(), header_bytes}, {out, label.block_bytes}};
  if (!read_parts(fd, parts)) return false;
  write_header(label, expected.data());
  uint64_t checksum = checksum_of(expected.data(), header_bytes, out, label.block_bytes);
  std::memcpy(expected.data() + offsetof(Fields, checksum), &checksum, sizeof checksum);
  return found == expected;
}

}  // namespace

size_t BlockLabel::header_bytes() const {
  size_t used = sizeof(Fields) + tokens.size() * sizeof(int32_t);
  return (used + kAlignment - 1) / kAlignment * kAlignment;
}

void seal_block(const BlockLabel& label, char* file) {
  write_header(label, file);
  size_t header_bytes = label.header_bytes();
  uint64_t checksum = checksum_of(file, header_bytes, file + header_bytes, label.block_bytes);
  std::memcpy(file + offsetof(Fields, checksum), &checksum, sizeof checksum);
}

BlockRead read_block(const std::string& path, const BlockLabel& label, void* out) {
  // O_NONBLOCK prevents a hang if the path is a pipe.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ELOOP ? BlockRead::kRefused : BlockRead::kAbsent;
  bool good = is_wanted(fd, label, out);
  close(fd);
  return good ? BlockRead::kGood : BlockRead::kRefused;
}

}  // namespace wherry
