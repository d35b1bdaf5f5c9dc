// A folder of blocks with a size limit, which processes share. Its whole state is in files:
//
//     <2 digits>/<64 digits>.block   a block by its key; modified at its last use
//     incoming/<process>-<n>.tmp     being written; locked while its writer lives
//     lock                           locked to reserve or free bytes; contains how many bytes are
//                                    in use: an estimate that is never too low
//
// Other files in the folder are ignored. A writer reserves its bytes before it writes them, so that
// the limit holds at all times. If there is too little room, it walks the folder, which gives the
// exact sum, and removes the least recently used blocks. A killed writer leaves a file without
// lock, which the next walk removes.
//
// There is no fsync. A block can be computed again, and its checksum detects damage from a power
// failure, while an fsync for each page would block the disk and wear flash memory.
#ifndef WHERRY_ENGINE_CACHE_DISK_BLOCK_FOLDER_H_
#define WHERRY_ENGINE_CACHE_DISK_BLOCK_FOLDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/disk/block_file.h"
#include "system/files.h"

namespace wherry {

// Returns the system's clock, which processes share, in nanoseconds since 1970.
int64_t wall_clock();

// A folder of blocks. Thread-safe. Functions marked "Throws" throw WHERRY_INTERNAL with path and
// reason; the other functions never throw.
class BlockFolder {
 public:
  // Stores path and limit; accesses no file.
  BlockFolder(const std::string& path, uint64_t max_bytes);

  // Creates the folder, and checks that this process can write to it and lock it. Throws.
  void check() const;
  bool has(const ChainKey& key) const;
  // Reads a block as read_block does; removes rejected blocks.
  BlockRead read(const BlockLabel& label, void* out) const;
  // Asks the operating system to read the block into its page cache.
  void read_ahead(const ChainKey& key) const;
  // Records a use of the block at `time` (of wall_clock). Among blocks of equal time, eviction
  // takes the deepest.
  void touch(const ChainKey& key, int64_t time) const;

  // Writes a sealed block file under a temporary name, then renames it. Creates the folder,
  // readable by its owner alone, because blocks contain users' texts. Throws.
  void write(const ChainKey& key, const char* data, size_t bytes, int64_t time);
  // Removes the files of killed writers, and blocks beyond the limit. Throws.
  void sweep();

  uint64_t bytes() const { return bytes_; }      // bytes in use, as last measured
  uint64_t evicted() const { return evicted_; }  // number of blocks that this object evicted

 private:
  class Lock;
  struct StoredBlock;

  std::string file_of(const ChainKey& key) const;
  std::string incoming() const { return path_ + "/incoming"; }
  files::File create_incoming(size_t bytes, std::string* name);  // returns the locked file
  // Evicts until `needed` more bytes fit; returns bytes in use.
  uint64_t make_room(uint64_t needed);
  // Removes files of killed writers; returns the bytes of files being written.
  uint64_t remove_leftovers();
  std::vector<StoredBlock> find_blocks() const;

  std::string path_;
  const uint64_t max_bytes_;
  std::atomic<uint64_t> bytes_{0}, evicted_{0};
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_BLOCK_FOLDER_H_
