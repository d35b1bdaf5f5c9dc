#include "cache/disk/block_file.h"

#include <cerrno>
#include <cstring>

#include "support/checksum.h"
#include "system/files.h"

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

bool matches(const files::File& file, const BlockLabel& label, void* out) {
  const std::optional<files::Info> info = file.info();
  if (!info || info->bytes != label.file_bytes()) return false;
  size_t header_bytes = label.header_bytes();
  std::vector<char> header(header_bytes), expected(header_bytes);
  if (!file.read_at(header.data(), header_bytes, 0)) return false;
  if (!file.read_at(out, label.block_bytes, header_bytes)) return false;
  write_header(label, expected.data());
  uint64_t checksum = checksum_of(expected.data(), header_bytes, out, label.block_bytes);
  std::memcpy(expected.data() + offsetof(Fields, checksum), &checksum, sizeof checksum);
  return header == expected;
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
  const files::File file(path, files::Open::kPlain);
  if (!file) return errno == ELOOP ? BlockRead::kRefused : BlockRead::kAbsent;
  return matches(file, label, out) ? BlockRead::kGood : BlockRead::kRefused;
}

}  // namespace wherry
