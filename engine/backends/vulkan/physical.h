// The Vulkan devices of this machine: their properties and limits, without opening them.
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
  VkPhysicalDeviceProperties properties{};  // including limits
  VkPhysicalDeviceMemoryProperties memory{};
  std::string driver;
  VkDeviceSize largest_allocation = 0;
  uint32_t queue_family = 0;  // a family with compute
  uint32_t subgroup = 1;
  bool half = false;                  // whether kernels can load and store float16 in buffers
  bool budget = false;                // whether it reports free memory
  std::vector<MatrixShape> matrices;  // cooperative matrices; none: a feature is missing
  uint32_t least_lanes = 0, most_lanes = 0;  // subgroup sizes that can be required, with matrices
  uint32_t most_subgroups = 0;               // in a workgroup of required subgroup size

  // Whether kernels can multiply such matrices, in workgroups of `threads` threads.
  bool multiplies(const MatrixShape& shape, uint32_t lanes, uint32_t threads) const;
  // The most bytes of a tensor that a kernel can use.
  VkDeviceSize largest_buffer() const;
  backends::DeviceFacts facts() const;
  // Finds the memory type with these properties among those in `bits`, in the largest heap; the
  // index for VkMemoryAllocateInfo, or -1.
  int memory_type(uint32_t bits, VkMemoryPropertyFlags wanted) const;
};

// Extensions to enable on a device with cooperative matrices.
inline constexpr const char* kMatrixExtensions[] = {
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
    VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};

// The features that kernels with matrices need, as a chain of pointers; do not copy it.
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
  // Requests these features and no others.
  void set();
};

// The devices with Vulkan 1.1 and compute: first discrete ones, then integrated, virtual, CPUs.
// Throws errors of tvm-ffi.
std::vector<PhysicalDevice> physical_devices();

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_
