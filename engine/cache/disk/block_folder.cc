#include "cache/disk/block_folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "cache/disk/folder_lock.h"
#include "support/error.h"
#include "system/path.h"

namespace wherry {

namespace {

// Age difference of neighbouring blocks in a chain. A chain is useless without its beginning, so
// among blocks used at the same time eviction takes the last ones first: each counts as a little
// older than the one before it.
constexpr int64_t kDepthAge = 10000;    // nanoseconds
constexpr uint64_t kAllocation = 4096;  // bytes; file systems round file sizes up to a multiple
constexpr size_t kDigits = 64;          // hexadecimal digits of a key
constexpr char kBlockSuffix[] = ".block", kIncomingSuffix[] = ".tmp";

uint64_t allocated(uint64_t bytes) { return (bytes + kAllocation - 1) / kAllocation * kAllocation; }

bool all_in(const std::string& text, const char* characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string::npos;
}

// Returns the part of the name before the suffix, or "" if the name has another suffix.
std::string stem_of(const std::string& name, const std::string& suffix) {
  if (name.size() <= suffix.size()) return "";
  size_t stem = name.size() - suffix.size();
  return name.compare(stem, suffix.size(), suffix) == 0 ? name.substr(0, stem) : "";
}

bool is_block(const std::string& shard, const std::string& name) {
  std::string stem = stem_of(name, kBlockSuffix);
  return stem.size() == kDigits && all_in(stem, "0123456789abcdef") &&
         stem.compare(0, 2, shard) == 0;
}

bool is_incoming(const std::string& name) {
  std::string stem = stem_of(name, kIncomingSuffix);
  return stem.find('-') != std::string::npos && all_in(stem, "0123456789-");
}

int64_t time_of_use(const ChainKey& key, int64_t time) { return time - kDepthAge * key.depth; }

void make_folder(const std::string& path) {
  if (!files::make_folder(path)) fail_on(path, "create");
}

}  // namespace

int64_t wall_clock() { return files::wall_clock(); }

struct BlockFolder::StoredBlock {
  std::string path;
  int64_t time;    // time of the last use, in nanoseconds
  uint64_t bytes;  // bytes allocated on the disk
};

// Locks the folder during the object's lifetime; creates the folder if it is missing.
class BlockFolder::Lock : public FolderLock {
 public:
  explicit Lock(const std::string& folder) : FolderLock(file_in(folder)) {}

  static std::string file_in(const std::string& folder) {
    std::error_code ignored;  // opening the lock file on the next line reports a failure
    std::filesystem::create_directories(path_of(folder).parent_path(), ignored);
    make_folder(folder);
    make_folder(folder + "/incoming");
    return folder + "/lock";
  }
};

// Makes the path absolute, so that the process may change its working directory.
BlockFolder::BlockFolder(const std::string& path, uint64_t max_bytes) : max_bytes_(max_bytes) {
  std::error_code ignored;
  std::filesystem::path full = std::filesystem::absolute(path_of(path), ignored).lexically_normal();
  path_ = text_of(full.has_filename() ? full : full.parent_path());
}

void BlockFolder::check() const {
  check_lock(Lock::file_in(path_));
  if (!files::can_write_in(incoming())) fail_on(incoming(), "write");
}

std::string BlockFolder::file_of(const ChainKey& key) const {
  std::string digits = key.hex();
  return path_ + "/" + digits.substr(0, 2) + "/" + digits + kBlockSuffix;
}

bool BlockFolder::has(const ChainKey& key) const { return files::can_read(file_of(key)); }

BlockRead BlockFolder::read(const BlockLabel& label, void* out) const {
  std::string path = file_of(label.key);
  BlockRead result = read_block(path, label, out);
  // The sum of bytes is corrected at the next walk of the folder.
  if (result == BlockRead::kRefused) files::remove(path);
  return result;
}

void BlockFolder::read_ahead(const ChainKey& key) const {
  const files::File file(file_of(key), files::Open::kPlain);
  if (file) file.read_ahead();
}

void BlockFolder::touch(const ChainKey& key, int64_t time) const {
  files::set_modified(file_of(key), time_of_use(key, time));
}

void BlockFolder::write(const ChainKey& key, const char* data, size_t bytes, int64_t time) {
  if (has(key)) return touch(key, time);  // another process wrote the block in the meantime
  std::string temporary;
  files::File file = create_incoming(bytes, &temporary);
  try {
    if (!file.write_at(data, bytes, 0)) fail_on(incoming(), "write");
    file.set_modified(time_of_use(key, time));
    std::string path = file_of(key);
    if (!files::rename(temporary, path)) {
      std::string shard = path.substr(0, path.rfind('/'));
      make_folder(shard);
      if (!files::rename(temporary, path)) fail_on(shard, "rename a file to one in");
    }
  } catch (...) {
    files::remove(temporary);
    file.unlock();
    throw;
  }
  file.unlock();
}

// Creates a temporary file. Adds its bytes to the sum before they are written: a writer that is
// killed or fails leaves a sum that is too high until the next walk, but never too low.
files::File BlockFolder::create_incoming(size_t bytes, std::string* name) {
  static std::atomic<uint64_t> count{0};
  Lock lock(path_);
  uint64_t needed = allocated(bytes);
  std::optional<uint64_t> in_use = lock.number();
  if (!in_use || *in_use + needed > max_bytes_) in_use = make_room(needed);
  if (*in_use + needed > max_bytes_) {
    throw Error(WHERRY_INTERNAL, concat(path_, ": no room for a block of ", needed,
                                        " bytes, the limit (\"cache_bytes\") is ", max_bytes_));
  }
  lock.set_number(*in_use + needed);
  bytes_ = *in_use + needed;
  files::File file;
  do {  // tries further names, because processes in two containers may have the same id
    *name = concat(incoming(), "/", files::process_id(), "-", count.fetch_add(1), kIncomingSuffix);
    file = files::File(*name, files::Open::kNew);
  } while (!file && errno == EEXIST);
  if (!file) fail_on(incoming(), "create a file in");
  // Sets the file's size now, because walks count it.
  if (!file.try_lock() || !file.set_size(bytes)) {
    int reason = errno;
    files::remove(*name);
    file.unlock();
    errno = reason;
    fail_on(incoming(), "set the size of a file in");
  }
  return file;
}

void BlockFolder::sweep() {
  Lock lock(path_);
  bytes_ = make_room(0);
  lock.set_number(bytes_);
}

uint64_t BlockFolder::make_room(uint64_t needed) {
  uint64_t total = remove_leftovers();
  std::vector<StoredBlock> blocks = find_blocks();
  for (const StoredBlock& block : blocks) total += block.bytes;
  if (total + needed <= max_bytes_ || needed > max_bytes_) return total;
  // Evicts more than needed, so that walks of the folder are rare.
  uint64_t goal = max_bytes_ - max_bytes_ / 16;
  std::sort(blocks.begin(), blocks.end(),
            [](const StoredBlock& a, const StoredBlock& b) { return a.time < b.time; });
  for (const StoredBlock& block : blocks) {
    if (total + needed <= goal) break;
    if (!files::remove(block.path) && errno != ENOENT) fail_on(path_, "remove a block in");
    total -= block.bytes;
    ++evicted_;
  }
  return total;
}

uint64_t BlockFolder::remove_leftovers() {
  uint64_t total = 0;
  files::for_each_name(incoming(), [&](const std::string& name) {
    if (!is_incoming(name)) return;
    std::string path = incoming() + "/" + name;
    files::File file(path, files::Open::kPlain);
    if (!file) return;
    if (file.try_lock()) {
      files::remove(path);  // the file's writer is gone
      file.unlock();
      return;
    }
    if (std::optional<files::Info> info = file.info()) total += allocated(info->bytes);
  });
  return total;
}

std::vector<BlockFolder::StoredBlock> BlockFolder::find_blocks() const {
  std::vector<StoredBlock> blocks;
  files::for_each_name(path_, [&](const std::string& shard) {
    if (shard.size() != 2 || !all_in(shard, "0123456789abcdef")) return;
    files::for_each_name(path_ + "/" + shard, [&](const std::string& name) {
      if (!is_block(shard, name)) return;
      std::string path = path_ + "/" + shard + "/" + name;
      std::optional<files::Info> info = files::info_of(path);
      if (info) blocks.push_back({path, info->modified, allocated(info->bytes)});
    });
  });
  return blocks;
}

}  // namespace wherry
