#include "cache/disk/disk_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/error.h"
#include "system/this_thread.h"

namespace wherry {

namespace {

// Upper bound on the bytes of reused free buffers; new memory is slow.
constexpr size_t kKeptBytes = 8 << 20;
constexpr size_t kFewestQueued = 4;  // number of blocks that may always be queued
// Upper bounds on queued keys; further keys are ignored.
constexpr size_t kMostAhead = 1 << 13, kMostTouches = 1 << 16;

}  // namespace

DiskStore::DiskStore(const DiskStoreOptions& options)
    : options_(options),
      capacity_(
          std::max(kFewestQueued, options.queue_bytes / std::max<size_t>(1, options.block_bytes))),
      folder_(options.folder, options.max_bytes) {
  thread_ = std::thread([this] { run(); });
}

DiskStore::~DiskStore() {
  {
    Lock lock(mutex_);
    closing_ = true;
    ahead_.clear();
  }
  work_.notify_all();
  thread_.join();
}

bool DiskStore::has(const ChainKey& key) {
  {
    Lock lock(mutex_);
    auto match = pending_.find(key);
    if (match != pending_.end() && match->second->filled) return true;
  }
  return folder_.has(key);
}

void DiskStore::prefetch(const ChainKey* keys, size_t n) {
  {
    Lock lock(mutex_);
    for (size_t i = 0; i < n && ahead_.size() < kMostAhead; ++i) ahead_.push_back(keys[i]);
  }
  work_.notify_one();
}

bool DiskStore::load(const ChainKey& key, const int32_t* tokens, size_t n, void* out) {
  BlockLabel label{key, {tokens, tokens + n}, options_.block_bytes};
  {
    Lock lock(mutex_);
    auto match = pending_.find(key);
    if (match != pending_.end() && match->second->filled) {
      const Pending& block = *match->second;
      if (block.label.tokens != label.tokens) return false;
      std::memcpy(out, block.file.data.get() + label.header_bytes(), label.block_bytes);
      ++stats_.loaded;
      return true;
    }
  }
  BlockRead result = folder_.read(label, out);
  if (result == BlockRead::kGood) touch(&key, 1);
  Lock lock(mutex_);
  if (result == BlockRead::kGood) ++stats_.loaded;
  if (result == BlockRead::kRefused) ++stats_.refused;
  return result == BlockRead::kGood;
}

bool DiskStore::save(const ChainKey& key, const int32_t* tokens, size_t n,
                     const std::function<void(void*)>& read) {
  if (has(key)) {
    touch(&key, 1);
    return true;
  }
  std::shared_ptr<Pending> block = reserve({key, {tokens, tokens + n}, options_.block_bytes});
  if (block == nullptr) return false;
  try {
    read(block->file.data.get() + block->label.header_bytes());
  } catch (...) {
    Lock lock(mutex_);
    forget(block);
    throw;
  }
  {
    Lock lock(mutex_);
    block->filled = true;
    queue_.push_back(std::move(block));
  }
  work_.notify_one();
  return true;
}

std::shared_ptr<DiskStore::Pending> DiskStore::reserve(const BlockLabel& label) {
  auto block = std::make_shared<Pending>();
  block->label = label;
  block->time = wall_clock();
  {
    Lock lock(mutex_);
    if (pending_.size() >= capacity_ || Clock::now() < off_until_) {
      ++stats_.dropped;
      return nullptr;
    }
    // Another thread fills this block already.
    if (!pending_.emplace(label.key, block).second) return nullptr;
    if (!buffers_.empty()) {
      block->file = std::move(buffers_.back());
      buffers_.pop_back();
    }
  }
  // The buffer is not cleared, because every byte is overwritten.
  if (block->file.size < label.file_bytes()) {
    block->file = {std::unique_ptr<char[]>(new char[label.file_bytes()]), label.file_bytes()};
  }
  return block;
}

void DiskStore::forget(const std::shared_ptr<Pending>& block) {
  buffers_.push_back(std::move(block->file));
  pending_.erase(block->label.key);
  if (pending_.empty()) {
    size_t kept = kKeptBytes / std::max<size_t>(1, options_.block_bytes);
    buffers_.resize(std::min(buffers_.size(), kept));
    idle_.notify_all();
  }
}

void DiskStore::touch(const ChainKey* keys, size_t n) {
  int64_t now = wall_clock();
  {
    Lock lock(mutex_);
    for (size_t i = 0; i < n && touches_.size() < kMostTouches; ++i) {
      touches_.push_back({keys[i], now});
    }
  }
  work_.notify_one();
}

void DiskStore::flush() {
  Lock lock(mutex_);
  idle_.wait(lock, [this] { return pending_.empty() && !has_work() && !busy_; });
}

BlockStoreStats DiskStore::stats() const {
  Lock lock(mutex_);
  BlockStoreStats stats = stats_;
  stats.bytes = folder_.bytes();
  stats.evicted = folder_.evicted();
  return stats;
}

void DiskStore::set_problem(const std::string& reason) {
  stats_.problem = reason;
  off_until_ = Clock::now() + options_.retry;
}

void DiskStore::run() {
  this_thread::block_signals();
  std::string problem;
  try {
    folder_.sweep();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  Lock lock(mutex_);
  if (!problem.empty()) set_problem(problem);
  while (true) {
    busy_ = false;
    if (!has_work()) {
      idle_.notify_all();
      if (closing_) return;
      work_.wait(lock, [this] { return closing_ || has_work(); });
    }
    busy_ = true;
    if (has_work()) work(lock);
  }
}

// Does one item of work: prefetches come first, because a load will wait for them; touches come
// last, because only eviction needs them.
void DiskStore::work(Lock& lock) {
  if (!ahead_.empty()) {
    ChainKey key = ahead_.front();
    ahead_.pop_front();
    lock.unlock();
    folder_.read_ahead(key);
    lock.lock();
  } else if (!queue_.empty()) {
    write_next(lock);
  } else {
    Touch touch = touches_.front();
    touches_.pop_front();
    lock.unlock();
    folder_.touch(touch.key, touch.time);
    lock.lock();
  }
}

void DiskStore::write_next(Lock& lock) {
  std::shared_ptr<Pending> block = std::move(queue_.front());
  queue_.pop_front();
  std::string problem;
  bool off = Clock::now() < off_until_;
  lock.unlock();
  // Sealing the file is safe: concurrent loads of the block read only the bytes after the header.
  if (!off) {
    try {
      seal_block(block->label, block->file.data.get());
      folder_.write(block->label.key, block->file.data.get(), block->label.file_bytes(),
                    block->time);
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  lock.lock();
  if (!problem.empty()) {
    set_problem(problem);
  } else if (!off) {
    ++stats_.saved;
    stats_.problem.clear();
  }
  if (off || !problem.empty()) ++stats_.dropped;
  forget(block);
}

}  // namespace wherry
