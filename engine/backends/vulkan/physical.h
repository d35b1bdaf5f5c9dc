// The Vulkan devices of this machine: what they are and what they allow, before any is opened.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_

#include <string>
#include <vector>

#include "backends/devices.h"
#include "backends/vulkan/api.h"

namespace wherry::vulkan {

// A shape of float16 matrices whose sums are float32: c[m, n] += a[m, k] b[k, n].
struct MatrixShape {
  uint32_t m, n, k;
};

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};  // with limits
  VkPhysicalDeviceMemoryProperties memory{};
  std::string driver;
  VkDeviceSize largest_allocation = 0;
  uint32_t queue_family = 0;  // that computes
  uint32_t subgroup = 1;
  bool half = false;                  // loads float16 from buffers, and stores it there
  bool budget = false;                // tells how much memory is left
  std::vector<MatrixShape> matrices;  // that a subgroup multiplies; none: it has not all it takes
  uint32_t least_lanes = 0, most_lanes = 0;  // that a subgroup can be asked to have, with matrices
  uint32_t most_subgroups = 0;               // of a workgroup then

  // Whether kernels can multiply such matrices, in workgroups of so many threads.
  bool multiplies(const MatrixShape& shape, uint32_t lanes, uint32_t threads) const;
  // Bytes of one tensor that a kernel can have.
  VkDeviceSize largest_buffer() const;
  backends::DeviceFacts facts() const;
  // An index for VkMemoryAllocateInfo with these properties, of the types in `bits`; the largest
  // heap first. -1: there is none.
  int memory_type(uint32_t bits, VkMemoryPropertyFlags wanted) const;
};

// What a device with matrices is opened with.
inline constexpr const char* kMatrixExtensions[] = {
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
    VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};

// Features that kernels with matrices take, in a chain; not to be copied.
struct MatrixFeatures {
  VkPhysicalDeviceSubgroupSizeControlFeatures lanes{};
  VkPhysicalDeviceShaderFloat16Int8Features halves{};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};

  MatrixFeatures();
  MatrixFeatures(const MatrixFeatures&) = delete;
  MatrixFeatures& operator=(const MatrixFeatures&) = delete;

  void* first() { return &lanes; }
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR& last() { return matrices; }
  bool all() const;
  // As they are asked for: these and no others.
  void set();
};

// Those that have Vulkan 1.1 and compute: discrete ones, integrated, virtual, then CPUs.
// Throws errors of tvm-ffi.
std::vector<PhysicalDevice> physical_devices();

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_
