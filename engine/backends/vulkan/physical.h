// The Vulkan devices of this machine: their properties and limits, without opening them.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_

#include <string>
#include <vector>

#include "backends/devices.h"
#include "backends/vulkan/api.h"

namespace wherry::vulkan {

// A shape of cooperative float16 matrices whose sums are float32: c[m, n] += a[m, k] b[k, n].
struct MatrixShape {
  uint32_t m, n, k;
};

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};  // properties of the device, including its limits
  VkPhysicalDeviceMemoryProperties memory{};
  std::string driver;
  VkDeviceSize largest_allocation = 0;
  uint32_t queue_family = 0;  // index of a queue family with compute
  uint32_t subgroup = 1;
  bool half = false;    // whether kernels can load and store float16 in buffers
  bool budget = false;  // whether the device reports free memory
  // Shapes of cooperative matrices; empty if a feature is missing.
  std::vector<MatrixShape> matrices;
  // Range of subgroup sizes that a kernel with matrices can require.
  uint32_t least_lanes = 0, most_lanes = 0;
  uint32_t most_subgroups = 0;  // most subgroups in a workgroup with a required subgroup size

  // Whether kernels can multiply matrices of this shape in workgroups of `threads` threads.
  bool multiplies(const MatrixShape& shape, uint32_t lanes, uint32_t threads) const;
  // Returns the bytes of the largest tensor that a kernel can use.
  VkDeviceSize largest_buffer() const;
  backends::DeviceFacts facts() const;
  // Finds the memory type with the wanted properties among those in `bits` that lies in the largest
  // heap; returns the index for VkMemoryAllocateInfo, or -1.
  int memory_type(uint32_t bits, VkMemoryPropertyFlags required) const;
};

// The extensions to enable on a device with cooperative matrices.
inline constexpr const char* kMatrixExtensions[] = {
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
    VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};

// The features that kernels with cooperative matrices need, as a chain of pointers; must not be
// copied.
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
  // Requests the features of the chain and no others.
  void set();
};

// Returns the devices with Vulkan 1.1 and compute: first discrete ones, then integrated, virtual,
// CPUs. Throws errors of tvm-ffi.
std::vector<PhysicalDevice> physical_devices();

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_PHYSICAL_H_
