// Device memory: tensors are parts of few large buffers, because drivers limit how many
// allocations there may be (4096 on some).
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_MEMORY_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_MEMORY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/physical.h"

namespace wherry::vulkan {

// A VkBuffer over the whole of one allocation.
struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize bytes = 0;
  char* mapped = nullptr;  // where the host sees it; null for device memory
};

// What a tensor's data pointer points to on these devices.
struct Buffer {
  Block* block;
  VkDeviceSize offset;
  VkDeviceSize bytes;  // a multiple of 4, at least as many as were asked for
};

// Which parts of a block are free. Sizes and offsets are multiples of the alignment.
class FreeList {
 public:
  explicit FreeList(VkDeviceSize bytes);

  // The offset of a part, from the smallest hole that has room; -1: there is none.
  int64_t take(VkDeviceSize bytes);
  void give(VkDeviceSize offset, VkDeviceSize bytes);
  bool whole() const;  // nothing is taken

 private:
  VkDeviceSize bytes_;
  std::map<VkDeviceSize, VkDeviceSize> holes_;  // offset to size; no two touch
};

// Makes and destroys blocks.
class Allocator {
 public:
  Allocator(const PhysicalDevice& physical, VkDevice device, const DeviceFunctions& vk);

  // Memory of the device. Throws a MemoryError of tvm-ffi that says what to do.
  Block device_block(VkDeviceSize bytes) const;
  // Memory of the host that the device reads and writes.
  Block host_block(VkDeviceSize bytes) const;
  void release(const Block& block) const;

 private:
  VkResult make(VkDeviceSize bytes, bool host, Block& block) const;
  std::string advice(VkDeviceSize bytes) const;

  const PhysicalDevice& physical_;
  VkDevice device_;
  const DeviceFunctions& vk_;
};

// Parts of blocks. Memory that is given back goes to the next who asks without waiting: a device
// works in order, and hazards are found by offsets.
class Pool {
 public:
  explicit Pool(const Allocator& allocator, VkDeviceSize alignment)
      : allocator_(allocator), alignment_(alignment) {}

  // Throws a MemoryError of tvm-ffi.
  Buffer* take(VkDeviceSize bytes);
  // False: a block has nothing in it any more. It may be destroyed when the device is idle, which
  // `trim` does.
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
