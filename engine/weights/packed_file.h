// packed-<key>.bin: weights in the layout of one library, written at the first load, mapped later.
//
// A header, then the bytes of each block at the offset that PackedLayout gives, 256-byte aligned.
// Machine-local: native byte order, and rebuilt whenever key, layout or size do not fit.
#ifndef WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_
#define WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weights/mapped_file.h"

namespace wherry {

// Where each block lies. A function of the blocks' sizes and names alone, so that it is known
// before the first block is computed and the file needs no index.
class PackedLayout {
 public:
  // `description` names the block's content (tensor, dtype, shape); all of them are hashed.
  // Returns the block's offset in bytes.
  int64_t add(const std::string& description, int64_t nbytes);

  int64_t file_size() const { return end_; }
  uint64_t hash() const { return hash_; }

 private:
  int64_t end_ = 256;  // the header has the first 256 bytes
  uint64_t hash_ = 0;
};

std::string packed_path(const std::string& folder, uint64_t key);

// The file, or null if there is none, or it is of another key or layout, damaged or cut.
std::shared_ptr<const MappedFile> open_packed(const std::string& path, uint64_t key,
                                              const PackedLayout& layout);

// Writes under a temporary name in the same folder; commit() flushes and renames, and without it
// the temporary file is removed. Creates the folder. Throws WHERRY_INTERNAL with the reason.
class PackedWriter {
 public:
  PackedWriter(const std::string& path, uint64_t key, const PackedLayout& layout);
  ~PackedWriter();
  PackedWriter(const PackedWriter&) = delete;
  PackedWriter& operator=(const PackedWriter&) = delete;

  void write(int64_t offset, const void* data, int64_t nbytes);
  void commit();

 private:
  std::string path_, temporary_;
  int fd_ = -1;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_PACKED_FILE_H_
