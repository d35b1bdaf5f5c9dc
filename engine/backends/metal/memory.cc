#include "backends/metal/memory.h"

#include <utility>

#include "backends/metal/api.h"

namespace wherry::metal {

namespace {

// Larger buffers are freed at once: phones have little memory, and a model allocates them rarely.
constexpr size_t kMostKept = size_t{1} << 20;
constexpr size_t kMostKeptInAll = size_t{16} << 20;

// Rounds a size up to a multiple of 1/8 of its power of two, so that near sizes share buffers.
size_t rounded_up(size_t bytes) {
  size_t step = 64;
  while (step * 16 <= bytes) step *= 2;
  return bytes == 0 ? step : (bytes + step - 1) / step * step;
}

}  // namespace

std::unique_ptr<Buffer> Memory::take(size_t bytes, const std::function<bool(uint64_t)>& idle) {
  const size_t rounded = rounded_up(bytes);
  auto [at, end] = kept_.equal_range(rounded);
  for (; at != end; ++at) {
    if (idle && !idle(at->second->used)) continue;
    std::unique_ptr<Buffer> buffer = std::move(at->second);
    kept_.erase(at);
    kept_bytes_ -= rounded;
    return buffer;
  }
  std::unique_ptr<Buffer> buffer = allocate(rounded);
  if (buffer != nullptr || kept_.empty()) return buffer;
  trim();
  return allocate(rounded);
}

std::unique_ptr<Buffer> Memory::allocate(size_t rounded) {
  const Api& metal = Api::get();
  Own object(metal.new_buffer(device_, rounded, kStorageModeShared));
  if (!object) return nullptr;
  char* host = static_cast<char*>(metal.contents(object.get()));
  return std::make_unique<Buffer>(Buffer{std::move(object), host, rounded, 0, 0});
}

// Command buffers keep the buffers that they use, so that a freed one may still be in use.
void Memory::give(std::unique_ptr<Buffer> buffer) {
  const size_t bytes = buffer->bytes;
  if (bytes > kMostKept || kept_bytes_ + bytes > kMostKeptInAll) return;
  kept_bytes_ += bytes;
  kept_.emplace(bytes, std::move(buffer));
}

void Memory::trim() {
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace wherry::metal
