// Vulkan's functions, looked up at run time: a machine without Vulkan can load everything else.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_API_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_API_H_

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <string>

// Declares VK_KHR_cooperative_matrix, as specified, for headers older than 1.3.255.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
constexpr int32_t VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1;
constexpr int32_t VK_SCOPE_SUBGROUP_KHR = 3;
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  int32_t AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  int32_t scope;
};
typedef VkResult(VKAPI_PTR* PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)(
    VkPhysicalDevice, uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif

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

// The system's Vulkan library and one instance of it.
struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  // Null if the loader or driver does not support cooperative matrices.
  PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR
      GetPhysicalDeviceCooperativeMatrixPropertiesKHR = nullptr;
  WHERRY_VULKAN_INSTANCE_FUNCTIONS(WHERRY_VULKAN_DECLARE)

  // Opens Vulkan at the first call. If there is no Vulkan, each call throws a RuntimeError of
  // tvm-ffi that names the libraries that it tried.
  static const Instance& get();
};

// The functions of one logical device as pointers that bypass the loader's dispatch.
struct DeviceFunctions {
  WHERRY_VULKAN_DEVICE_FUNCTIONS(WHERRY_VULKAN_DECLARE)

  DeviceFunctions() = default;
  explicit DeviceFunctions(VkDevice device);
};

// Returns a result as text, e.g. "VK_ERROR_DEVICE_LOST (-4)".
std::string name_of(VkResult result);

// Throws a RuntimeError, or a MemoryError, of tvm-ffi unless the result is VK_SUCCESS. call: the
// failed function's name.
void check(VkResult result, const char* call);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_API_H_
