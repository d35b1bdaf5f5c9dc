// The device memory of Vulkan tensors, which are parts of a few large buffers, because drivers
// limit the number of allocations (4096 on some).
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_MEMORY_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_MEMORY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/physical.h"

namespace wherry::vulkan {

// One memory allocation, with a VkBuffer of its size.
struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize bytes = 0;
  char* mapped = nullptr;  // host address of the mapped memory; null for device memory
};

// The memory of one tensor: the data pointer of a tensor on these devices points to a Buffer.
struct Buffer {
  Block* block;
  VkDeviceSize offset;
  VkDeviceSize bytes;  // requested size in bytes, rounded up to a multiple of 4
};

// The free parts of a block. Sizes and offsets are multiples of the alignment.
class FreeList {
 public:
  explicit FreeList(VkDeviceSize bytes);

  // Allocates from the smallest hole that fits; returns the offset, or -1 if none fits.
  int64_t take(VkDeviceSize bytes);
  void give(VkDeviceSize offset, VkDeviceSize bytes);
  bool is_empty() const;  // whether the whole block is free

 private:
  VkDeviceSize bytes_;
  // Maps the offset of each hole to its size; holes are never adjacent.
  std::map<VkDeviceSize, VkDeviceSize> holes_;
};

// Creates and destroys memory blocks.
class Allocator {
 public:
  Allocator(const PhysicalDevice& physical, VkDevice device, const DeviceFunctions& vk);

  // Allocates device memory. Throws a MemoryError of tvm-ffi that says what to do.
  Block device_block(VkDeviceSize bytes) const;
  // Allocates host memory that the device can access.
  Block host_block(VkDeviceSize bytes) const;
  void release(const Block& block) const;

 private:
  VkResult make(VkDeviceSize bytes, bool host, Block& block) const;
  std::string advice(VkDeviceSize bytes) const;

  const PhysicalDevice& physical_;
  VkDevice device_;
  const DeviceFunctions& vk_;
};

// Allocates tensors as parts of blocks. Freed memory is reused without waiting: a device executes
// commands in order, and Stream detects hazards by offset.
class Pool {
 public:
  explicit Pool(const Allocator& allocator, VkDeviceSize alignment)
      : allocator_(allocator), alignment_(alignment) {}

  // Allocates a buffer. Throws a MemoryError of tvm-ffi.
  Buffer* take(VkDeviceSize bytes);
  // Frees a buffer. Returns false if its block is now empty, so that `trim` may destroy the block
  // when the device is idle.
  bool give(Buffer* buffer);
  void trim();

 private:
  struct Shared {
    Block block;
    FreeList free;
  };

  const Allocator& allocator_;
  VkDeviceSize alignment_;
  std::vector<std::unique_ptr<Shared>> blocks_;
};

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_MEMORY_H_
