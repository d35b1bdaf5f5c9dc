// Vulkan's functions, looked up at run time: a machine without Vulkan can load everything else.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_API_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_API_H_

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <string>

namespace wherry::vulkan {

// clang-format off
#define WHERRY_VULKAN_INSTANCE_FUNCTIONS(X) \
  X(CreateDevice) X(EnumerateDeviceExtensionProperties) X(EnumeratePhysicalDevices) \
  X(GetDeviceProcAddr) X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties2) \
  X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceQueueFamilyProperties)

#define WHERRY_VULKAN_DEVICE_FUNCTIONS(X) \
  X(AllocateCommandBuffers) X(AllocateDescriptorSets) X(AllocateMemory) X(BeginCommandBuffer) \
  X(BindBufferMemory) X(CmdBindDescriptorSets) X(CmdBindPipeline) X(CmdCopyBuffer) \
  X(CmdDispatch) X(CmdPipelineBarrier) X(CreateBuffer) X(CreateCommandPool) \
  X(CreateComputePipelines) X(CreateDescriptorPool) X(CreateDescriptorSetLayout) X(CreateFence) \
  X(CreatePipelineCache) X(CreatePipelineLayout) X(CreateShaderModule) X(DestroyBuffer) \
  X(DestroyDescriptorSetLayout) X(DestroyPipeline) X(DestroyPipelineCache) \
  X(DestroyPipelineLayout) X(DestroyShaderModule) X(EndCommandBuffer) X(FreeMemory) \
  X(GetBufferMemoryRequirements) X(GetDeviceQueue) X(GetPipelineCacheData) X(MapMemory) \
  X(QueueSubmit) X(ResetDescriptorPool) X(ResetFences) X(UpdateDescriptorSets) X(WaitForFences)
// clang-format on

#define WHERRY_VULKAN_DECLARE(name) PFN_vk##name name = nullptr;

// The system's Vulkan and an instance of it.
struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  WHERRY_VULKAN_INSTANCE_FUNCTIONS(WHERRY_VULKAN_DECLARE)

  // Opened at the first call. Throws a RuntimeError of tvm-ffi that says what was looked for, again
  // at each call, if there is none.
  static const Instance& get();
};

// The functions of one logical device, past the loader's dispatch.
struct DeviceFunctions {
  WHERRY_VULKAN_DEVICE_FUNCTIONS(WHERRY_VULKAN_DECLARE)

  DeviceFunctions() = default;
  explicit DeviceFunctions(VkDevice device);
};

// "VK_ERROR_DEVICE_LOST (-4)".
std::string name_of(VkResult result);

// Throws a RuntimeError, or a MemoryError, of tvm-ffi unless the result is VK_SUCCESS.
void check(VkResult result, const char* call);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_API_H_
