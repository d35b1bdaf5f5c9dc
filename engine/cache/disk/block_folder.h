// A folder of blocks that processes share, and its size limit. The files are the truth:
//
//     <2 digits>/<64 digits>.block   a block by its key; the time of modification is that of use
//     incoming/<process>-<n>.tmp     being written, locked as long as its writer lives
//     lock                           held while bytes are reserved or given back; holds how many
//                                    are in use: an estimate that is never too low
//
// Everything else in the folder is left alone. A writer reserves its bytes before it writes them,
// so that the limit holds at every moment; who finds too little room walks the folder, which gives
// the true sum, and removes what was used least recently. Whoever is killed leaves a file without a
// lock, which the next walk removes.
//
// Nothing is flushed (fsync). A block can be computed again, and its checksum finds what a power
// failure tore, while a flush for each page would hold up the disk and wear flash memory.
#ifndef WHERRY_ENGINE_CACHE_DISK_BLOCK_FOLDER_H_
#define WHERRY_ENGINE_CACHE_DISK_BLOCK_FOLDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/disk/block_file.h"

namespace wherry {

// A point of the system's clock, which processes share; nanoseconds since 1970.
int64_t wall_clock();

// Thread-safe. What throws, throws WHERRY_INTERNAL with path and reason; the rest never fails.
class BlockFolder {
 public:
  // Touches no file.
  BlockFolder(const std::string& path, uint64_t max_bytes);

  // Makes the folder, and looks whether this process may write there and lock it. Throws.
  void check() const;
  bool has(const ChainKey& key) const;
  // As read_block; a refused block is removed.
  BlockRead read(const BlockLabel& label, void* out) const;
  // Asks the system to bring the block into memory.
  void read_ahead(const ChainKey& key) const;
  // The block was of use at that time (wall_clock); of blocks of one time, the deepest go first.
  void touch(const ChainKey& key, int64_t time) const;

  // Writes a file of seal_block() under a temporary name, then renames it. Creates the folder,
  // readable by its owner alone: it holds what people wrote. Throws.
  void write(const ChainKey& key, const char* file, size_t bytes, int64_t time);
  // Removes leftovers, and blocks beyond the limit. Throws.
  void sweep();

  uint64_t bytes() const { return bytes_; }      // in use as last seen
  uint64_t evicted() const { return evicted_; }  // blocks, by this object

 private:
  class Lock;
  struct Found;

  std::string file_of(const ChainKey& key) const;
  std::string incoming() const { return path_ + "/incoming"; }
  int create_incoming(size_t bytes, std::string* name);  // its descriptor, locked
  uint64_t make_room(uint64_t wanted);  // bytes in use, after evicting what `wanted` more need
  uint64_t remove_leftovers();          // bytes of what is being written
  std::vector<Found> find_blocks() const;

  std::string path_;
  const uint64_t max_bytes_;
  std::atomic<uint64_t> bytes_{0}, evicted_{0};
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_BLOCK_FOLDER_H_
