// packed-<key>.bin: weights in the layout of one library, written at the first load, mapped later.
//
// A header; the bytes of each block at the offset that PackedLayout gives, 256-byte aligned; a
// checksum for each block, and for each tensor outside of the file that the layout names.
// Machine-local: native byte order, and rebuilt whenever key, layout, size or checksums do not fit.
#ifndef WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_
#define WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weights/mapped_file.h"

namespace wherry {

// What a packed file answers for. A function of sizes and names alone, so that it is known before
// the first block is computed and the file needs no index.
class PackedLayout {
 public:
  struct Entry {
    int64_t offset = -1;  // bytes from the file's beginning; -1: outside of the file
    int64_t nbytes = 0;
  };

  // A block of the file. `description` names its content (tensor, dtype, shape); all of them are
  // hashed. Returns the entry's index.
  size_t add(const std::string& description, int64_t nbytes);
  // A tensor that lies elsewhere, and whose checksum alone is kept.
  size_t add_outside(const std::string& description, int64_t nbytes);

  const std::vector<Entry>& entries() const { return entries_; }
  int64_t checksums() const { return (end_ + 7) / 8 * 8; }  // offset of the uint64 of each entry
  int64_t file_size() const {
    return checksums() + static_cast<int64_t>(entries_.size() * sizeof(uint64_t));
  }
  uint64_t hash() const { return hash_; }

 private:
  size_t add_entry(const std::string& description, Entry entry);

  std::vector<Entry> entries_;
  int64_t end_ = 256;  // the header has the first 256 bytes
  uint64_t hash_ = 0;
};

std::string packed_path(const std::string& folder, uint64_t key);

// A file whose header, size and list of checksums are right; its blocks may still be damaged.
class PackedFile {
 public:
  // Null if there is no file, or it is of another key or layout, damaged or cut.
  static std::unique_ptr<const PackedFile> open(const std::string& path, uint64_t key,
                                                const PackedLayout& layout);

  const std::shared_ptr<const MappedFile>& mapping() const { return file_; }
  const char* block(size_t entry) const { return file_->data() + layout_.entries()[entry].offset; }
  // Checksum of a block, or of a tensor outside, from when the file was written.
  uint64_t checksum(size_t entry) const;
  // Whether each block has its checksum. Reads all of them, on up to `threads` threads: 0.2 s a
  // gigabyte and thread at the first touch, half of it for pages that a forward would touch anyway.
  bool intact(int threads) const;

 private:
  PackedFile(std::shared_ptr<const MappedFile> file, const PackedLayout& layout)
      : file_(std::move(file)), layout_(layout) {}

  std::shared_ptr<const MappedFile> file_;
  PackedLayout layout_;
};

// Writes under a temporary name in the same folder; commit() flushes and renames, and without it
// the temporary file is removed. Creates the folder. Throws WHERRY_NO_SPACE with the folder, the
// bytes wanted and those free, before anything is written if that is known then; WHERRY_INTERNAL
// with another reason.
class PackedWriter {
 public:
  PackedWriter(const std::string& path, uint64_t key, const PackedLayout& layout);
  ~PackedWriter();
  PackedWriter(const PackedWriter&) = delete;
  PackedWriter& operator=(const PackedWriter&) = delete;

  // Each entry once, before commit(): a block's bytes, or the checksum of a tensor outside.
  void write(size_t entry, const void* data);
  void set_checksum(size_t entry, uint64_t checksum) { checksums_[entry] = checksum; }
  void commit();

 private:
  void write_at(int64_t offset, const void* data, int64_t nbytes);
  [[noreturn]] void fail(const std::string& path, const char* action) const;  // by errno
  [[noreturn]] void fail_full(const char* has) const;

  std::string path_, temporary_;
  uint64_t key_;
  PackedLayout layout_;
  std::vector<uint64_t> checksums_;
  uint64_t room_ = 0;  // bytes, before the first was written
  int fd_ = -1;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_
