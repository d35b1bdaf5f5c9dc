// Test blocks whose content is a function of their place, so that any process can check them.
#ifndef WHERRY_ENGINE_TESTING_BLOCKS_H_
#define WHERRY_ENGINE_TESTING_BLOCKS_H_

#include <string>
#include <vector>

#include "cache/disk/block_file.h"

namespace wherry::testing {

constexpr int kPageTokens = 16;

// Returns the labels of the first `depth` pages of the text with this number.
inline std::vector<BlockLabel> chain_of(int text, int depth, size_t block_bytes,
                                        const ChainRoot& root = {"layout", "model", 0, 0}) {
  std::vector<BlockLabel> labels;
  ChainKey key = ChainKey::root(root);
  for (int page = 0; page < depth; ++page) {
    std::vector<int32_t> tokens(kPageTokens, text * 1000 + page);
    key = key.child(tokens.data(), tokens.size());
    labels.push_back({key, tokens, block_bytes});
  }
  return labels;
}

inline void fill_block(const BlockLabel& label, void* out) {
  uint64_t state = ChainKeyHash()(label.key);
  auto* bytes = static_cast<unsigned char*>(out);
  for (size_t i = 0; i < label.block_bytes; ++i) {
    if (i % 4 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<unsigned char>(state >> (32 + 8 * (i % 4)));
  }
}

inline std::string content_of(const BlockLabel& label) {
  std::string block(label.block_bytes, '\0');
  fill_block(label, block.data());
  return block;
}

// Returns the content of a block's file.
inline std::string file_of(const BlockLabel& label) {
  std::string file(label.file_bytes(), '\0');
  fill_block(label, file.data() + label.header_bytes());
  seal_block(label, file.data());
  return file;
}

}  // namespace wherry::testing

#endif  // WHERRY_ENGINE_TESTING_BLOCKS_H_
