// Helpers to save, load and count the blocks of blocks.h in a DiskStore's folder.
#ifndef WHERRY_ENGINE_TESTING_DISK_BLOCKS_H_
#define WHERRY_ENGINE_TESTING_DISK_BLOCKS_H_

#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "cache/disk/disk_store.h"
#include "cache/disk/folder_lock.h"
#include "testing/blocks.h"

namespace wherry::testing {

inline DiskStoreOptions options_of(const std::string& folder, size_t block_bytes) {
  DiskStoreOptions options;
  options.folder = folder;
  options.block_bytes = block_bytes;
  return options;
}

inline bool save(BlockStore& store, const BlockLabel& label) {
  return store.save(label.key, label.tokens.data(), label.tokens.size(),
                    [&](void* out) { fill_block(label, out); });
}

enum class LoadResult { kNothing, kRight, kWrong };

inline LoadResult load(BlockStore& store, const BlockLabel& label) {
  std::string out(label.block_bytes, '\0');
  if (!store.load(label.key, label.tokens.data(), label.tokens.size(), out.data())) {
    return LoadResult::kNothing;
  }
  return out == content_of(label) ? LoadResult::kRight : LoadResult::kWrong;
}

inline bool loads(BlockStore& store, const BlockLabel& label) {
  return load(store, label) == LoadResult::kRight;
}

inline std::vector<ChainKey> keys_of(const std::vector<BlockLabel>& labels) {
  std::vector<ChainKey> keys;
  for (const BlockLabel& label : labels) keys.push_back(label.key);
  return keys;
}

inline std::string path_of(const std::string& folder, const ChainKey& key) {
  return folder + "/" + key.hex().substr(0, 2) + "/" + key.hex() + ".block";
}

inline size_t count_incoming(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator files(folder + "/incoming", error);
  return error ? 0 : static_cast<size_t>(std::distance(begin(files), end(files)));
}

// Returns the bytes on the disk at one moment, under the lock for reserving and evicting. A file
// that is renamed during the count counts once.
inline uint64_t bytes_in(const std::string& folder) {
  FolderLock lock(folder + "/lock");
  std::map<std::string, uint64_t> sizes;
  std::error_code gone;
  for (int twice = 0; twice < 2; ++twice) {
    for (std::filesystem::recursive_directory_iterator at(folder, gone), end; at != end;
         at.increment(gone)) {
      if (!at->is_regular_file(gone) || at->path().filename() == "lock") continue;
      uint64_t size = at->file_size(gone);
      if (!gone) sizes[at->path().string()] = (size + 4095) / 4096 * 4096;
    }
  }
  uint64_t total = 0;
  for (const auto& [path, size] : sizes) {
    if (std::filesystem::exists(path, gone)) total += size;
  }
  return total;
}

}  // namespace wherry::testing

#endif  // WHERRY_ENGINE_TESTING_DISK_BLOCKS_H_
