// A packed file, packed-<key>.bin: weights in the layout of one library, written at the first load
// and mapped later.
//
// It has a header; the bytes of each block at the offset that PackedLayout gives, 256-byte aligned;
// and a checksum for each block and for each tensor outside of the file that the layout names. The
// file is local to a machine: it has native byte order, and is rebuilt if any check fails.
#ifndef WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_
#define WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "system/files.h"
#include "tensors/mapped_file.h"

namespace wherry {

// The layout of a packed file. It follows from sizes and names alone, so it is known before the
// first block is computed, and the file needs no index.
class PackedLayout {
 public:
  struct Entry {
    int64_t offset = -1;  // bytes from the file's beginning; -1 if outside of the file
    int64_t nbytes = 0;
  };

  // Adds a block. `description` names its content (tensor, dtype, shape); hash() covers all
  // descriptions. Returns the entry's index.
  size_t add(const std::string& description, int64_t nbytes);
  // Adds a tensor in another file, of which only the checksum is stored. Returns the entry's index.
  size_t add_outside(const std::string& description, int64_t nbytes);

  const std::vector<Entry>& entries() const { return entries_; }
  // Offset of the checksums, a uint64 for each entry.
  int64_t checksums() const { return (end_ + 7) / 8 * 8; }
  int64_t file_size() const {
    return checksums() + static_cast<int64_t>(entries_.size() * sizeof(uint64_t));
  }
  uint64_t hash() const { return hash_; }

 private:
  size_t add_entry(const std::string& description, Entry entry);

  std::vector<Entry> entries_;
  int64_t end_ = 256;  // blocks start after the header's 256 bytes
  uint64_t hash_ = 0;
};

std::string packed_path(const std::string& folder, uint64_t key);

// A packed file with a valid header, size and list of checksums; its blocks may still be damaged.
class PackedFile {
 public:
  // Opens a packed file. Returns null if it is missing, damaged or truncated, or has another key or
  // layout.
  static std::unique_ptr<const PackedFile> open(const std::string& path, uint64_t key,
                                                const PackedLayout& layout);

  const std::shared_ptr<const MappedFile>& mapping() const { return file_; }
  const char* block(size_t entry) const { return file_->data() + layout_.entries()[entry].offset; }
  // Returns the stored checksum of a block, or of a tensor outside of the file.
  uint64_t checksum(size_t entry) const;
  // Compares each block with its checksum. Reads all blocks on up to `threads` threads: the first
  // read takes 0.2 s for a gigabyte and thread, half of it for page faults that a step would cause
  // anyway.
  bool intact(int threads) const;

 private:
  PackedFile(std::shared_ptr<const MappedFile> file, const PackedLayout& layout)
      : file_(std::move(file)), layout_(layout) {}

  std::shared_ptr<const MappedFile> file_;
  PackedLayout layout_;
};

// Writes a packed file: a temporary file in the same folder, which commit() flushes and renames,
// and which the destructor removes without commit(). Creates the folder. Throws WHERRY_NO_SPACE
// with the folder, the bytes needed and the bytes free, before writing if the free space is known;
// for other failures WHERRY_INTERNAL.
class PackedWriter {
 public:
  PackedWriter(const std::string& path, uint64_t key, const PackedLayout& layout);
  ~PackedWriter();
  PackedWriter(const PackedWriter&) = delete;
  PackedWriter& operator=(const PackedWriter&) = delete;

  // Write an entry: a block's bytes, or the checksum of a tensor outside of the file. Call one of
  // these for each entry before commit().
  void write(size_t entry, const void* data);
  void set_checksum(size_t entry, uint64_t checksum) { checksums_[entry] = checksum; }
  void commit();

 private:
  void write_at(int64_t offset, const void* data, int64_t nbytes);
  // Throws the error for a failed action, according to errno.
  [[noreturn]] void fail(const std::string& path, const char* action) const;
  [[noreturn]] void fail_full(const char* has) const;

  std::string path_, temporary_;
  uint64_t key_;
  PackedLayout layout_;
  std::vector<uint64_t> checksums_;
  uint64_t room_ = 0;  // free bytes on the disk before the first write
  files::File file_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_
