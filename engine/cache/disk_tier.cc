#include "cache/disk_tier.h"

#include <algorithm>
#include <utility>

#include "support/error.h"

namespace wherry {

DiskTier::DiskTier(std::unique_ptr<BlockStore> store, const Model& model, Session& session,
                   KvCache& cache)
    : store_(std::move(store)),
      session_(session),
      cache_(cache),
      block_(block_bytes(session, cache.groups())) {
  const Metadata& metadata = model.metadata();
  root_.layout = concat("pages of ", metadata.page_size, " tokens, ", block_.size(), " bytes");
  root_.model = concat(metadata.name, " ", model.identity());
}

bool DiskTier::suits(const Metadata& metadata) {
  bool sees_all =
      std::all_of(metadata.groups.begin(), metadata.groups.end(),
                  [](const GroupSpec& group) { return group.window == 0 && !group.cross; });
  return sees_all && !metadata.groups.empty() && !metadata.recurrent();
}

size_t DiskTier::block_bytes(const Session& session, size_t groups) {
  size_t bytes = 0;
  for (size_t g = 0; g < groups; ++g) bytes += session.page_bytes(static_cast<int>(g));
  return bytes;
}

ChainKey DiskTier::root(const PrefixSpace& space) const {
  ChainRoot root = root_;
  root.salt = space.salt;
  root.adapter = space.adapter;
  if (space.embed) root.layout += ", of embeddings";
  return ChainKey::root(root);
}

// Returns the chain keys of the first `pages` pages.
std::vector<ChainKey> DiskTier::keys(const PrefixSpace& space, const std::vector<int32_t>& tokens,
                                     int64_t pages) const {
  const auto size = static_cast<size_t>(cache_.page_size());
  std::vector<ChainKey> keys;
  ChainKey key = root(space);
  for (size_t i = 0; i < static_cast<size_t>(pages); ++i) {
    key = key.child(&tokens[i * size], size);
    keys.push_back(key);
  }
  return keys;
}

int64_t DiskTier::prefetch(const PrefixSpace& space, const std::vector<int32_t>& tokens,
                           int64_t from, int64_t most) {
  std::vector<ChainKey> names = keys(space, tokens, most / cache_.page_size());
  auto end = static_cast<size_t>(from);
  while (end < names.size() && store_->has(names[end])) ++end;
  auto n = static_cast<int64_t>(end) - from;
  if (n <= 0) return 0;
  store_->prefetch(&names[static_cast<size_t>(from)], static_cast<size_t>(n));
  return n;
}

int64_t DiskTier::restore(const SequenceState& sequence, const PrefixSpace& space,
                          const std::vector<int32_t>& tokens, int64_t from, int64_t n) {
  const auto size = static_cast<size_t>(cache_.page_size());
  std::vector<ChainKey> names = keys(space, tokens, from + n);
  for (int64_t i = from; i < from + n; ++i) {
    auto page = static_cast<size_t>(i);
    if (!store_->load(names[page], &tokens[page * size], size, block_.data())) return i - from;
    const char* bytes = block_.data();
    for (size_t g = 0; g < cache_.groups(); ++g) {
      session_.write_page(static_cast<int>(g), sequence.pages[g][page], bytes);
      bytes += session_.page_bytes(static_cast<int>(g));
    }
  }
  return n;
}

void DiskTier::enqueue(const PrefixSpace& space, const std::vector<int32_t>& tokens,
                       int64_t computed) {
  int64_t end = computed / cache_.page_size() * cache_.page_size();
  if (end == 0) return;
  queue_.push_back({space, {tokens.begin(), tokens.begin() + end}, 0, {}});
}

void DiskTier::save(int64_t most) {
  while (most > 0 && !queue_.empty()) {
    Finished& finished = queue_.front();
    if (finished.keys.empty()) {
      auto pages = static_cast<int64_t>(finished.tokens.size()) / cache_.page_size();
      finished.keys = keys(finished.space, finished.tokens, pages);
    }
    if (save_next(finished)) {
      --most;
      continue;
    }
    store_->touch(finished.keys.data(), finished.keys.size());
    queue_.pop_front();
  }
}

// Saves the chain's next unsaved page. Returns false if there is none or the tree has evicted it.
bool DiskTier::save_next(Finished& finished) {
  const int64_t size = cache_.page_size();
  PrefixNode* node = cache_.tree().find_root(finished.space);
  auto pages = static_cast<int64_t>(finished.keys.size());
  for (int64_t i = 0; i < pages; ++i) {
    node = cache_.tree().child(*node, &finished.tokens[static_cast<size_t>(i * size)], size);
    if (node == nullptr) return false;
    if (i < finished.next || node->saved) continue;
    finished.next = i + 1;
    node->saved = true;
    auto page = static_cast<size_t>(i);
    store_->save(finished.keys[page], node->tokens.data(), node->tokens.size(), [&](void* to) {
      char* bytes = static_cast<char*>(to);
      for (size_t g = 0; g < cache_.groups(); ++g) {
        session_.read_page(static_cast<int>(g), node->pages[g], bytes);
        bytes += session_.page_bytes(static_cast<int>(g));
      }
    });
    return true;
  }
  return false;
}

}  // namespace wherry
