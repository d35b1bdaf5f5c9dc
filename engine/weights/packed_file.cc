#include "weights/packed_file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "support/checksum.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/parallel.h"
#include "system/path.h"

namespace wherry {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockAlignment = 256;
constexpr char kMagic[8] = {'W', 'H', 'P', 'A', 'C', 'K', '0', '2'};

struct Header {
  char magic[8];
  uint64_t key;
  uint64_t layout;
  uint64_t file_size;
  uint64_t checksums;  // checksum of the file's list of checksums
  uint64_t checksum;   // checksum of the header fields above
};

Header make_header(uint64_t key, const PackedLayout& layout, const char* checksums) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = key;
  header.layout = layout.hash();
  header.file_size = static_cast<uint64_t>(layout.file_size());
  header.checksums = checksum64(checksums, layout.entries().size() * sizeof(uint64_t));
  header.checksum = checksum64(&header, offsetof(Header, checksum));
  return header;
}

bool is_full(int error) {
#if defined(EDQUOT)  // Windows has no such error
  if (error == EDQUOT) return true;
#endif
  return error == ENOSPC || error == EFBIG;
}

// Returns a readable size, e.g. "420.5 MB".
std::string megabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

// Returns the free bytes on a folder's disk, or the largest number if unknown: some file systems
// report zeros.
uint64_t room_of(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  const bool unknown = error || space.capacity == 0;
  return unknown ? std::numeric_limits<uint64_t>::max() : space.available;
}

}  // namespace

size_t PackedLayout::add_entry(const std::string& description, Entry entry) {
  hash_ = Hash()
              .number(hash_)
              .text(description)
              .number(static_cast<uint64_t>(entry.offset))
              .number(static_cast<uint64_t>(entry.nbytes))
              .value();
  entries_.push_back(entry);
  return entries_.size() - 1;
}

size_t PackedLayout::add(const std::string& description, int64_t nbytes) {
  int64_t offset = (end_ + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  end_ = offset + nbytes;
  return add_entry(description, {offset, nbytes});
}

size_t PackedLayout::add_outside(const std::string& description, int64_t nbytes) {
  return add_entry(description, {-1, nbytes});
}

std::string packed_path(const std::string& folder, uint64_t key) {
  static const char* kDigits = "0123456789abcdef";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[key >> shift & 15];
  return text_of(path_of(folder) / ("packed-" + digits + ".bin"));
}

std::unique_ptr<const PackedFile> PackedFile::open(const std::string& path, uint64_t key,
                                                   const PackedLayout& layout) {
  std::error_code error;
  if (!fs::is_regular_file(path_of(path), error)) return nullptr;
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (file->size() != static_cast<size_t>(layout.file_size())) return nullptr;
  Header header = make_header(key, layout, file->data() + layout.checksums());
  if (std::memcmp(file->data(), &header, sizeof header) != 0) return nullptr;
  return std::unique_ptr<const PackedFile>(new PackedFile(std::move(file), layout));
}

uint64_t PackedFile::checksum(size_t entry) const {
  uint64_t value;
  std::memcpy(&value, file_->data() + layout_.checksums() + entry * sizeof value, sizeof value);
  return value;
}

bool PackedFile::intact(int threads) const {
  const std::vector<PackedLayout::Entry>& entries = layout_.entries();
  return failing(entries.size(), threads,
                 [&](size_t i) {
                   if (entries[i].offset < 0) return true;
                   return checksum64(block(i), static_cast<size_t>(entries[i].nbytes)) ==
                          checksum(i);
                 })
      .empty();
}

PackedWriter::PackedWriter(const std::string& path, uint64_t key, const PackedLayout& layout)
    : path_(path), key_(key), layout_(layout), checksums_(layout.entries().size()) {
  // Counts temporary files, because two engines of a process may write at the same time.
  static std::atomic<int> count{0};
  const fs::path target = path_of(path);
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  const std::string name = text_of(target.filename());
  temporary_ = text_of(target.parent_path() / concat(".", name, ".", files::process_id(), ".",
                                                     count.fetch_add(1), ".tmp"));
  room_ = room_of(target.parent_path());
  if (room_ < static_cast<uint64_t>(layout.file_size())) fail_full("has");
  file_ = files::File(temporary_, files::Open::kReplace);
  if (!file_) fail(temporary_, "create");
  try {
    if (!file_.set_size(static_cast<uint64_t>(layout.file_size()))) {
      fail(temporary_, "set the size");
    }
  } catch (...) {
    files::remove(temporary_);
    throw;
  }
}

PackedWriter::~PackedWriter() {
  if (!file_) return;
  file_.close();
  files::remove(temporary_);
}

void PackedWriter::fail(const std::string& path, const char* action) const {
  if (is_full(errno)) fail_full("had");  // other processes filled the disk during the write
  throw Error(WHERRY_INTERNAL,
              concat(path, ": cannot ", action, " packed weights: ", std::strerror(errno)));
}

void PackedWriter::fail_full(const char* has) const {
  const uint64_t bytes = static_cast<uint64_t>(layout_.file_size());
  throw Error(WHERRY_NO_SPACE, concat("The packed weights take ", megabytes(bytes), ", ",
                                      text_of(path_of(path_).parent_path()), " ", has, " ",
                                      megabytes(room_), " free"));
}

void PackedWriter::write(size_t entry, const void* data) {
  auto [offset, nbytes] = layout_.entries()[entry];
  write_at(offset, data, nbytes);
  checksums_[entry] = checksum64(data, static_cast<size_t>(nbytes));
}

void PackedWriter::write_at(int64_t offset, const void* data, int64_t nbytes) {
  if (!file_.write_at(data, static_cast<size_t>(nbytes), static_cast<uint64_t>(offset))) {
    fail(temporary_, "write");
  }
}

void PackedWriter::commit() {
  const char* list = reinterpret_cast<const char*>(checksums_.data());
  write_at(layout_.checksums(), list, static_cast<int64_t>(checksums_.size() * sizeof(uint64_t)));
  Header header = make_header(key_, layout_, list);
  write_at(0, &header, sizeof header);
  if (!file_.flush()) fail(temporary_, "flush");
  if (!files::rename(temporary_, path_)) fail(path_, "rename");
  file_.close();
}

}  // namespace wherry
