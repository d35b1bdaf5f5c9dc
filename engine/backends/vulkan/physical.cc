#include "backends/vulkan/physical.h"

#include <algorithm>
#include <cstring>

namespace wherry::vulkan {

namespace {

int rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

std::vector<std::string> extensions_of(VkPhysicalDevice handle) {
  const Instance& vk = Instance::get();
  uint32_t count = 0;
  check(vk.EnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> all(count);
  check(vk.EnumerateDeviceExtensionProperties(handle, nullptr, &count, all.data()),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<std::string> names;
  for (const auto& extension : all) names.emplace_back(extension.extensionName);
  return names;
}

bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the index of a queue family with compute; the number of families if there is none.
uint32_t compute_family(VkPhysicalDevice handle, uint32_t& count) {
  const Instance& vk = Instance::get();
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  uint32_t family = 0;
  while (family < count && (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family;
  return family;
}

bool stores_half(VkPhysicalDevice handle) {
  VkPhysicalDevice16BitStorageFeatures storage{};
  storage.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &storage;
  Instance::get().GetPhysicalDeviceFeatures2(handle, &features);
  return storage.storageBuffer16BitAccess == VK_TRUE;
}

std::vector<MatrixShape> shapes_of(VkPhysicalDevice handle) {
  auto get = Instance::get().GetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  if (get == nullptr) return {};
  uint32_t count = 0;
  check(get(handle, &count, nullptr), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count, empty);
  check(get(handle, &count, all.data()), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  std::vector<MatrixShape> shapes;
  for (const auto& one : all) {
    bool halves =
        one.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && one.BType == VK_COMPONENT_TYPE_FLOAT16_KHR;
    bool singles = one.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                   one.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
    if (halves && singles && one.scope == VK_SCOPE_SUBGROUP_KHR) {
      shapes.push_back({one.MSize, one.NSize, one.KSize});
    }
  }
  return shapes;
}

// Fills in the device's cooperative matrices if it has every feature that our kernels need.
void find_matrices(PhysicalDevice& device, const std::vector<std::string>& extensions) {
  for (const char* name : kMatrixExtensions) {
    if (!has(extensions, name)) return;
  }
  const Instance& vk = Instance::get();
  MatrixFeatures known;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = known.first();
  vk.GetPhysicalDeviceFeatures2(device.handle, &features);
  if (!device.half || !known.all()) return;
  VkPhysicalDeviceSubgroupSizeControlProperties lanes{};
  lanes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &lanes;
  vk.GetPhysicalDeviceProperties2(device.handle, &properties);
  if ((lanes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) return;
  device.least_lanes = lanes.minSubgroupSize;
  device.most_lanes = lanes.maxSubgroupSize;
  device.most_subgroups = lanes.maxComputeWorkgroupSubgroups;
  device.matrices = shapes_of(device.handle);
}

PhysicalDevice describe(VkPhysicalDevice handle, const std::vector<std::string>& extensions) {
  const Instance& vk = Instance::get();
  PhysicalDevice device;
  device.handle = handle;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceSubgroupProperties subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties maintenance{};
  maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  maintenance.pNext = &subgroup;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &maintenance;
  bool newer = has(extensions, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
  if (newer) subgroup.pNext = &driver;
  vk.GetPhysicalDeviceProperties2(handle, &properties);
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  vk.GetPhysicalDeviceMemoryProperties2(handle, &memory);
  device.properties = properties.properties;
  device.memory = memory.memoryProperties;
  device.driver = newer ? std::string(driver.driverName) + " " + driver.driverInfo
                        : std::to_string(properties.properties.driverVersion);
  device.largest_allocation = maintenance.maxMemoryAllocationSize;
  device.subgroup = std::max(subgroup.subgroupSize, 1u);
  device.half = stores_half(handle);
  device.budget = has(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  find_matrices(device, extensions);
  return device;
}

uint32_t device_heap(const VkPhysicalDeviceMemoryProperties& memory) {
  uint32_t best = 0;
  VkDeviceSize size = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 && heap.size > size) {
      best = i;
      size = heap.size;
    }
  }
  return best;
}

int64_t left_of(const PhysicalDevice& device, uint32_t heap) {
  if (!device.budget) return -1;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = &budget;
  Instance::get().GetPhysicalDeviceMemoryProperties2(device.handle, &memory);
  VkDeviceSize most = budget.heapBudget[heap], used = budget.heapUsage[heap];
  return most > used ? static_cast<int64_t>(most - used) : 0;
}

}  // namespace

MatrixFeatures::MatrixFeatures() {
  lanes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  lanes.pNext = &halves;
  halves.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  halves.pNext = &memory;
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
  memory.pNext = &matrices;
  matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
}

bool MatrixFeatures::all() const {
  return lanes.subgroupSizeControl && lanes.computeFullSubgroups && halves.shaderFloat16 &&
         memory.vulkanMemoryModel && matrices.cooperativeMatrix;
}

void MatrixFeatures::set() {
  lanes.subgroupSizeControl = lanes.computeFullSubgroups = VK_TRUE;
  halves.shaderFloat16 = memory.vulkanMemoryModel = matrices.cooperativeMatrix = VK_TRUE;
}

bool PhysicalDevice::multiplies(const MatrixShape& shape, uint32_t lanes, uint32_t threads) const {
  auto same = [&](const MatrixShape& own) {
    return own.m == shape.m && own.n == shape.n && own.k == shape.k;
  };
  return std::any_of(matrices.begin(), matrices.end(), same) && lanes >= least_lanes &&
         lanes <= most_lanes && threads <= lanes * most_subgroups;
}

VkDeviceSize PhysicalDevice::largest_buffer() const {
  return std::min<VkDeviceSize>(properties.limits.maxStorageBufferRange, largest_allocation);
}

backends::DeviceFacts PhysicalDevice::facts() const {
  const VkPhysicalDeviceLimits& limits = properties.limits;
  uint32_t heap = device_heap(memory);
  backends::DeviceFacts facts;
  facts.name = properties.deviceName;
  facts.driver = driver;
  facts.discrete = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  facts.software = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  facts.memory = memory.memoryHeaps[heap].size;
  facts.available_memory = left_of(*this, heap);
  facts.largest_buffer = largest_buffer();
  facts.threads_per_block =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  facts.shared_memory = limits.maxComputeSharedMemorySize;
  facts.warp_size = subgroup;
  return facts;
}

int PhysicalDevice::memory_type(uint32_t bits, VkMemoryPropertyFlags required) const {
  int best = -1;
  VkDeviceSize size = 0;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = memory.memoryTypes[i];
    bool fits = (bits >> i & 1) != 0 && (type.propertyFlags & required) == required;
    if (fits && memory.memoryHeaps[type.heapIndex].size > size) {
      best = static_cast<int>(i);
      size = memory.memoryHeaps[type.heapIndex].size;
    }
  }
  return best;
}

std::vector<PhysicalDevice> physical_devices() {
  const Instance& vk = Instance::get();
  uint32_t count = 0;
  check(vk.EnumeratePhysicalDevices(vk.handle, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> handles(count);
  check(vk.EnumeratePhysicalDevices(vk.handle, &count, handles.data()),
        "vkEnumeratePhysicalDevices");
  std::vector<PhysicalDevice> devices;
  for (VkPhysicalDevice handle : handles) {
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    vk.GetPhysicalDeviceProperties2(handle, &properties);
    uint32_t families = 0, family = compute_family(handle, families);
    if (properties.properties.apiVersion < VK_API_VERSION_1_1 || family == families) continue;
    devices.push_back(describe(handle, extensions_of(handle)));
    devices.back().queue_family = family;
  }
  std::stable_sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return rank(a.properties.deviceType) < rank(b.properties.deviceType);
  });
  return devices;
}

}  // namespace wherry::vulkan
