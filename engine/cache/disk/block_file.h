// <key>.block: one block, with the fields that identify it.
//
//     offset  bytes
//          0  8       "WHBLOCK1"
//          8  8       XXH64 of everything from 16 on, block first
//         16  32      key (chain_key.h; it covers layout, model and salt)
//         48  8       bytes of the block
//         56  8       number of tokens
//         64  4 each  the page's tokens, int32; zeros up to a multiple of 64
//          .  .       the block
//
// Little-endian. The checksum detects accidental damage. Any writer of the folder could forge
// pages, so only its owner has access to the folder (block_folder.h).
#ifndef WHERRY_ENGINE_CACHE_DISK_BLOCK_FILE_H_
#define WHERRY_ENGINE_CACHE_DISK_BLOCK_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/chain_key.h"

namespace wherry {

// What identifies a block. A file with another label under the same name is rejected.
struct BlockLabel {
  ChainKey key;
  std::vector<int32_t> tokens;
  size_t block_bytes = 0;

  size_t header_bytes() const;  // returns the offset of the block in the file
  size_t file_bytes() const { return header_bytes() + block_bytes; }
};

// Writes the header of a block whose bytes are at file + header_bytes().
void seal_block(const BlockLabel& label, char* file);

enum class BlockRead { kGood, kAbsent, kRefused };

// Reads the file at `path` into out [block_bytes], whose content is undefined unless the result is
// kGood.
BlockRead read_block(const std::string& path, const BlockLabel& label, void* out);

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_DISK_BLOCK_FILE_H_
