#include "backends/vulkan/device.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace wherry::vulkan {

namespace {

// Lower bound in bytes for the alignment of tensors in a block.
constexpr VkDeviceSize kAlignment = 256;
constexpr VkDeviceSize kFetchedStep = VkDeviceSize{1} << 20;

VkDevice open(const PhysicalDevice& physical) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDevice16BitStorageFeatures storage{};
  storage.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  storage.storageBuffer16BitAccess = VK_TRUE;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = physical.half ? &storage : nullptr;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  MatrixFeatures matrices;
  if (!physical.matrices.empty()) {
    matrices.set();
    // Devices with cooperative matrices also have this feature structure.
    matrices.last().pNext = &storage;
    info.pNext = matrices.first();
    info.enabledExtensionCount = static_cast<uint32_t>(std::size(kMatrixExtensions));
    info.ppEnabledExtensionNames = kMatrixExtensions;
  }
  VkDevice device = VK_NULL_HANDLE;
  check(Instance::get().CreateDevice(physical.handle, &info, nullptr, &device), "vkCreateDevice");
  return device;
}

VkQueue queue_of(const PhysicalDevice& physical, VkDevice device, const DeviceFunctions& vk) {
  VkQueue queue = VK_NULL_HANDLE;
  vk.GetDeviceQueue(device, physical.queue_family, 0, &queue);
  return queue;
}

Access access(const void* data, VkDeviceSize offset, VkDeviceSize bytes, bool written) {
  const auto* buffer = static_cast<const Buffer*>(data);
  VkDeviceSize begin = buffer->offset + offset;
  return {buffer->block, begin, begin + bytes, written};
}

backends::DeviceList enumerate() {
  backends::DeviceList list;
  for (PhysicalDevice& physical : physical_devices()) {
    list.devices.push_back(std::make_unique<VulkanDevice>(std::move(physical)));
  }
  return list;
}

}  // namespace

VulkanDevice::Opened::Opened(const PhysicalDevice& physical, VkDevice opened)
    : device(opened),
      vk(opened),
      allocator(physical, opened, vk),
      pool(allocator,
           std::max(kAlignment, physical.properties.limits.minStorageBufferOffsetAlignment)),
      stream(
          opened, queue_of(physical, opened, vk), physical.queue_family, vk, allocator,
          std::max<VkDeviceSize>(physical.properties.limits.minUniformBufferOffsetAlignment, 16)) {}

VulkanDevice::VulkanDevice(PhysicalDevice physical) : physical_(std::move(physical)) {}

VulkanDevice::Opened& VulkanDevice::opened() {
  std::call_once(once_, [this] { opened_ = std::make_unique<Opened>(physical_, open(physical_)); });
  return *opened_;
}

VkDevice VulkanDevice::handle() { return opened().device; }

const DeviceFunctions& VulkanDevice::functions() { return opened().vk; }

void* VulkanDevice::allocate(size_t bytes) {
  VkDeviceSize most = physical_.largest_buffer();
  if (bytes > most) {
    TVM_FFI_THROW(MemoryError)
        << "Vulkan: a tensor of " << bytes << " bytes; kernels on "
        << physical_.properties.deviceName << " can have " << most
        << " (maxStorageBufferRange). Take a smaller --context or --max-batch if it is a cache, a "
           "smaller --prefill-chunk if it is an intermediate result, 4-bit weights (--quant "
           "q4f16_1) if it is a weight, or --target opencl";
  }
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  try {
    return it.pool.take(bytes);
  } catch (const tvm::ffi::Error&) {
    it.stream.wait();
    it.pool.trim();
    return it.pool.take(bytes);
  }
}

void VulkanDevice::free(void* data) {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  for (Fetched& fetched : fetched_) {
    if (fetched.from == data) fetched.from = nullptr;
  }
  if (it.pool.give(static_cast<Buffer*>(data))) return;
  it.stream.wait();  // a block became empty, but running commands may still use it
  it.pool.trim();
}

void VulkanDevice::launch(const Pipeline& pipeline, const std::vector<Argument>& arguments,
                          const std::vector<uint32_t>& numbers,
                          const std::array<uint32_t, 3>& groups) {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  auto count = static_cast<uint32_t>(arguments.size());
  VkDeviceSize bytes = (numbers.size() * sizeof numbers[0] + 15) / 16 * 16;
  it.stream.reserve(bytes, count);
  Staged uniform = it.stream.stage(bytes);
  std::memcpy(uniform.host, numbers.data(), numbers.size() * sizeof numbers[0]);
  VkDescriptorSet set = it.stream.descriptors(pipeline.tensors);

  std::vector<VkDescriptorBufferInfo> infos;
  std::vector<Access> accesses;
  for (const Argument& argument : arguments) {
    const Buffer& buffer = *argument.buffer;
    infos.push_back({buffer.block->buffer, buffer.offset, buffer.bytes});
    accesses.push_back(access(&buffer, 0, buffer.bytes, argument.written));
  }
  infos.push_back({uniform.buffer, uniform.offset, bytes});
  std::vector<VkWriteDescriptorSet> writes(infos.size());
  for (uint32_t i = 0; i < writes.size(); ++i) {
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType =
        i < count ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    writes[i].pBufferInfo = &infos[i];
  }
  it.vk.UpdateDescriptorSets(it.device, count + 1, writes.data(), 0, nullptr);

  VkCommandBuffer commands = it.stream.record(accesses);
  it.vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
  it.vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set,
                              0, nullptr);
  it.vk.CmdDispatch(commands, groups[0], groups[1], groups[2]);
}

void VulkanDevice::copy(const void* from, size_t from_offset, void* to, size_t to_offset,
                        size_t bytes) {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  Access source = access(from, from_offset, bytes, false);
  Access target = access(to, to_offset, bytes, true);
  it.stream.reserve(0, 0);
  VkBufferCopy region{source.begin, target.begin, bytes};
  it.vk.CmdCopyBuffer(it.stream.record({source, target}), source.block->buffer,
                      target.block->buffer, 1, &region);
}

void VulkanDevice::write(const char* host, void* to, size_t to_offset, size_t bytes) {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t done = 0; done < bytes;) {
    size_t part = std::min<size_t>(bytes - done, Stream::kStagingBytes);
    it.stream.reserve(part, 0);
    Staged staged = it.stream.stage(part);
    std::memcpy(staged.host, host + done, part);
    Access target = access(to, to_offset + done, part, true);
    VkBufferCopy region{staged.offset, target.begin, part};
    it.vk.CmdCopyBuffer(it.stream.record({target}), staged.buffer, target.block->buffer, 1,
                        &region);
    done += part;
  }
}

void VulkanDevice::start(const void* from, size_t from_offset, size_t bytes) {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  Fetched& fetched = fetched_[fetch_turn_++ % fetched_.size()];
  fetched.from = nullptr;
  if (fetched.here.bytes < bytes) {
    it.stream.wait();  // an earlier copy may still run
    Block larger =
        it.allocator.host_block((bytes + kFetchedStep - 1) / kFetchedStep * kFetchedStep);
    it.allocator.release(std::exchange(fetched.here, larger));
  }
  it.stream.reserve(0, 0);
  Access source = access(from, from_offset, bytes, false);
  Access target{&fetched.here, 0, bytes, true};
  VkBufferCopy region{source.begin, 0, bytes};
  it.vk.CmdCopyBuffer(it.stream.record({source, target}), source.block->buffer, fetched.here.buffer,
                      1, &region);
  fetched.handed_over = it.stream.start_to_read();
  fetched.from = from;
  fetched.offset = from_offset;
  fetched.bytes = bytes;
}

bool VulkanDevice::take(const void* from, size_t from_offset, char* host, size_t bytes) {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  for (Fetched& fetched : fetched_) {
    if (fetched.from != from || fetched.offset != from_offset || fetched.bytes != bytes) continue;
    fetched.from = nullptr;
    it.stream.wait_for(fetched.handed_over);
    std::memcpy(host, fetched.here.mapped, bytes);
    return true;
  }
  return false;
}

void VulkanDevice::read(const void* from, size_t from_offset, char* host, size_t bytes) {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t done = 0; done < bytes;) {
    size_t part = std::min<size_t>(bytes - done, Stream::kStagingBytes);
    it.stream.reserve(part, 0);
    Staged staged = it.stream.stage(part);
    Access source = access(from, from_offset + done, part, false);
    VkBufferCopy region{source.begin, staged.offset, part};
    it.vk.CmdCopyBuffer(it.stream.record({source}), source.block->buffer, staged.buffer, 1,
                        &region);
    it.stream.start_to_read();
    it.stream.wait();
    std::memcpy(host + done, staged.host, part);
    done += part;
  }
}

void VulkanDevice::wait() {
  Opened& it = opened();
  std::lock_guard<std::mutex> lock(mutex_);
  it.stream.wait();
}

backends::Devices& devices() {
  // The devices are never destroyed, because tensors of static storage duration may outlive any
  // order of destruction.
  static auto* all = new backends::Devices(
      kDLVulkan, "Vulkan",
      "it takes a driver with Vulkan 1.1 (Debian's mesa-vulkan-drivers has one that runs on the "
      "CPU)",
      enumerate);
  return *all;
}

}  // namespace wherry::vulkan
