// The Vulkan devices of this machine: what they are and what they allow, before any is opened.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_

#include <string>
#include <vector>

#include "backends/devices.h"
#include "backends/vulkan/api.h"

namespace wherry::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};  // with limits
  VkPhysicalDeviceMemoryProperties memory{};
  std::string driver;
  VkDeviceSize largest_allocation = 0;
  uint32_t queue_family = 0;  // that computes
  uint32_t subgroup = 1;
  bool half = false;    // loads float16 from buffers, and stores it there
  bool budget = false;  // tells how much memory is left

  // Bytes of one tensor that a kernel can have.
  VkDeviceSize largest_buffer() const;
  backends::DeviceFacts facts() const;
  // An index for VkMemoryAllocateInfo with these properties, of the types in `bits`; the largest
  // heap first. -1: there is none.
  int memory_type(uint32_t bits, VkMemoryPropertyFlags wanted) const;
};

// Those that have Vulkan 1.1 and compute: discrete ones, integrated, virtual, then CPUs.
// Throws errors of tvm-ffi.
std::vector<PhysicalDevice> physical_devices();

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_
