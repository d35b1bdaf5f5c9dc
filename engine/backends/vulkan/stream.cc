#include "backends/vulkan/stream.h"

#include <tvm/ffi/error.h>

namespace wherry::vulkan {

namespace {

constexpr VkPipelineStageFlags kWork =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kAll = kWrites | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

bool conflict(const Access& a, const Access& b) {
  return a.block == b.block && a.begin < b.end && b.begin < a.end && (a.written || b.written);
}

}  // namespace

Stream::Stream(VkDevice device, VkQueue queue, uint32_t family, const DeviceFunctions& vk,
               const Allocator& allocator, VkDeviceSize alignment)
    : device_(device), queue_(queue), vk_(vk), alignment_(alignment) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = family;
  VkCommandPool pool = VK_NULL_HANDLE;
  check(vk_.CreateCommandPool(device_, &info, nullptr, &pool), "vkCreateCommandPool");
  for (Batch& batch : batches_) make(batch, pool, allocator);
}

void Stream::make(Batch& batch, VkCommandPool pool, const Allocator& allocator) {
  VkCommandBufferAllocateInfo commands{};
  commands.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  commands.commandPool = pool;
  commands.commandBufferCount = 1;
  check(vk_.AllocateCommandBuffers(device_, &commands, &batch.commands),
        "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  check(vk_.CreateFence(device_, &fence, nullptr, &batch.fence), "vkCreateFence");
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kMostTensors},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, kMostCommands}};
  VkDescriptorPoolCreateInfo descriptors{};
  descriptors.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  descriptors.maxSets = kMostCommands;
  descriptors.poolSizeCount = 2;
  descriptors.pPoolSizes = sizes;
  check(vk_.CreateDescriptorPool(device_, &descriptors, nullptr, &batch.descriptors),
        "vkCreateDescriptorPool");
  batch.staging = allocator.host_block(kStagingBytes);
}

void Stream::finish(Batch& batch) {
  if (!batch.running) return;
  batch.running = false;
  check(vk_.WaitForFences(device_, 1, &batch.fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vk_.ResetFences(device_, 1, &batch.fence), "vkResetFences");
}

Stream::Batch& Stream::open() {
  Batch& batch = batches_[current_];
  if (recording_) return batch;
  finish(batch);
  check(vk_.ResetDescriptorPool(device_, batch.descriptors, 0), "vkResetDescriptorPool");
  batch.staged = 0;
  batch.count = 0;
  batch.tensors = 0;
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vk_.BeginCommandBuffer(batch.commands, &info), "vkBeginCommandBuffer");
  recording_ = true;
  return batch;
}

void Stream::submit() {
  if (!recording_) return;
  Batch& batch = batches_[current_];
  recording_ = false;
  current_ = (current_ + 1) % batches_.size();
  check(vk_.EndCommandBuffer(batch.commands), "vkEndCommandBuffer");
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &batch.commands;
  check(vk_.QueueSubmit(queue_, 1, &info, batch.fence), "vkQueueSubmit");
  batch.running = true;
  batch.number = ++handed_over_;
}

void Stream::reserve(VkDeviceSize staged_bytes, uint32_t tensors) {
  if (recording_) {
    const Batch& batch = batches_[current_];
    bool full = batch.count >= kMostCommands || batch.staged + staged_bytes > kStagingBytes ||
                batch.tensors + tensors > kMostTensors;
    if (full) submit();
  }
  open().tensors += tensors;
}

Staged Stream::stage(VkDeviceSize bytes) {
  Batch& batch = open();
  Staged staged{batch.staging.buffer, batch.staged, batch.staging.mapped + batch.staged};
  batch.staged += (bytes + alignment_ - 1) / alignment_ * alignment_;
  return staged;
}

VkDescriptorSet Stream::descriptors(VkDescriptorSetLayout layout) {
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = open().descriptors;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(vk_.AllocateDescriptorSets(device_, &info, &set), "vkAllocateDescriptorSets");
  return set;
}

void Stream::barrier(VkPipelineStageFlags to, VkAccessFlags access) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = kWrites;
  memory.dstAccessMask = access;
  vk_.CmdPipelineBarrier(open().commands, kWork, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

VkCommandBuffer Stream::record(const std::vector<Access>& accesses) {
  Batch& batch = open();
  bool conflicts = accesses_.size() > kMostAccesses;
  for (const Access& earlier : accesses_) {
    for (const Access& now : accesses) conflicts = conflicts || conflict(earlier, now);
    if (conflicts) break;
  }
  if (conflicts) {  // a barrier also covers earlier batches, in submission order
    barrier(kWork, kAll);
    accesses_.clear();
  }
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  ++batch.count;
  return batch.commands;
}

void Stream::wait() {
  submit();
  for (Batch& batch : batches_) finish(batch);
  accesses_.clear();
}

uint64_t Stream::start_to_read() {
  barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  submit();
  return handed_over_;
}

// Batches end in order: if this batch's slot was reused, the batch has ended.
void Stream::wait_for(uint64_t handed_over) {
  for (Batch& batch : batches_) {
    if (batch.number == handed_over) finish(batch);
  }
}

}  // namespace wherry::vulkan
