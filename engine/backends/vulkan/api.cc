#include "backends/vulkan/api.h"

#include <dlfcn.h>
#include <tvm/ffi/error.h>

#include <cstring>
#include <map>
#include <vector>

#include "backends/system_library.h"

namespace wherry::vulkan {

namespace {

#if defined(__APPLE__)
constexpr std::initializer_list<const char*> kLibraries = {"libvulkan.1.dylib",
                                                           "libMoltenVK.dylib"};
#elif defined(__ANDROID__)
constexpr std::initializer_list<const char*> kLibraries = {"libvulkan.so"};
constexpr char kFix[] = "The phone has no driver for Vulkan, which Android has from version 7.0 on";
#else
constexpr std::initializer_list<const char*> kLibraries = {"libvulkan.so.1", "libvulkan.so"};
#endif
#ifndef __ANDROID__
constexpr char kFix[] =
    "On Debian: apt-get install libvulkan1 and the driver of the device "
    "(mesa-vulkan-drivers has one that runs on CPUs)";
#endif

void* open_library() { return backends::open_system_library(kLibraries, "Vulkan", kFix); }

template <typename F, typename Handle, typename Get>
void find(Get get, Handle handle, const char* name, F& function) {
  function = reinterpret_cast<F>(get(handle, name));
  if (function == nullptr) {
    TVM_FFI_THROW(RuntimeError) << "the system's Vulkan has no " << name
                                << "; version 1.1 is needed";
  }
}

bool has_extension(PFN_vkGetInstanceProcAddr get, const char* name) {
  PFN_vkEnumerateInstanceExtensionProperties enumerate = nullptr;
  find(get, VkInstance{}, "vkEnumerateInstanceExtensionProperties", enumerate);
  uint32_t count = 0;
  if (enumerate(nullptr, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkExtensionProperties> all(count);
  if (enumerate(nullptr, &count, all.data()) < 0) return false;
  for (const auto& extension : all) {
    if (std::strcmp(extension.extensionName, name) == 0) return true;
  }
  return false;
}

VkInstance create(PFN_vkGetInstanceProcAddr get) {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "wherry";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
#ifdef VK_KHR_portability_enumeration
  const char* portability = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
  // The Vulkan loader lists Apple's devices only with this extension.
  if (has_extension(get, portability)) {
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &portability;
  }
#endif
  PFN_vkCreateInstance create_instance = nullptr;
  find(get, VkInstance{}, "vkCreateInstance", create_instance);
  VkInstance instance = VK_NULL_HANDLE;
  check(create_instance(&info, nullptr, &instance), "vkCreateInstance");
  return instance;
}

Instance load() {
  auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(open_library(), "vkGetInstanceProcAddr"));
  if (get == nullptr) TVM_FFI_THROW(RuntimeError) << "libvulkan has no vkGetInstanceProcAddr";
  Instance vk;
  vk.handle = create(get);
#define WHERRY_FIND(name) find(get, vk.handle, "vk" #name, vk.name);
  WHERRY_VULKAN_INSTANCE_FUNCTIONS(WHERRY_FIND)
#undef WHERRY_FIND
  vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR =
      reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
          get(vk.handle, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  return vk;
}

}  // namespace

const Instance& Instance::get() {
  static const Instance instance = load();
  return instance;
}

DeviceFunctions::DeviceFunctions(VkDevice device) {
  auto get = Instance::get().GetDeviceProcAddr;
#define WHERRY_FIND(name) find(get, device, "vk" #name, this->name);
  WHERRY_VULKAN_DEVICE_FUNCTIONS(WHERRY_FIND)
#undef WHERRY_FIND
}

std::string name_of(VkResult result) {
  static const std::map<int, const char*> kNames = {
      {VK_TIMEOUT, "VK_TIMEOUT"},
      {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
      {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
      {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
      {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
      {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
      {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
      {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
      {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
      {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
      {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"}};
  auto match = kNames.find(result);
  std::string number = "(" + std::to_string(result) + ")";
  return match == kNames.end() ? "result " + number : match->second + (" " + number);
}

void check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    TVM_FFI_THROW(MemoryError) << "Vulkan: " << call << " failed: " << name_of(result);
  }
  TVM_FFI_THROW(RuntimeError) << "Vulkan: " << call << " failed: " << name_of(result)
                              << (result == VK_ERROR_DEVICE_LOST
                                      ? ". The driver gave the device up: a kernel may have run "
                                        "longer than it allows. Try a smaller --prefill-chunk"
                                      : "");
}

}  // namespace wherry::vulkan
