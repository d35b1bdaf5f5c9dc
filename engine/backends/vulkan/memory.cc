#include "backends/vulkan/memory.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <iterator>

namespace wherry::vulkan {

namespace {

constexpr VkDeviceSize kBlockBytes = VkDeviceSize{64} << 20;

std::string megabytes(VkDeviceSize bytes) { return std::to_string(bytes / 1000000) + " MB"; }

}  // namespace

FreeList::FreeList(VkDeviceSize bytes) : bytes_(bytes) { holes_[0] = bytes; }

int64_t FreeList::take(VkDeviceSize bytes) {
  auto best = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    bool better = best == holes_.end() || hole->second < best->second;
    if (hole->second >= bytes && better) best = hole;
  }
  if (best == holes_.end()) return -1;
  auto [offset, size] = *best;
  holes_.erase(best);
  if (size > bytes) holes_[offset + bytes] = size - bytes;
  return static_cast<int64_t>(offset);
}

void FreeList::give(VkDeviceSize offset, VkDeviceSize bytes) {
  auto next = holes_.lower_bound(offset);
  if (next != holes_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  holes_[offset] = bytes;
}

bool FreeList::is_empty() const { return holes_.size() == 1 && holes_.begin()->second == bytes_; }

Allocator::Allocator(const PhysicalDevice& physical, VkDevice device, const DeviceFunctions& vk)
    : physical_(physical), device_(device), vk_(vk) {}

VkResult Allocator::make(VkDeviceSize bytes, bool host, Block& block) const {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               (host ? VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT : VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  VkResult result = vk_.CreateBuffer(device_, &info, nullptr, &block.buffer);
  if (result != VK_SUCCESS) return result;
  VkMemoryRequirements needs{};
  vk_.GetBufferMemoryRequirements(device_, block.buffer, &needs);
  constexpr VkMemoryPropertyFlags kShared =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  int type = -1;
  if (host) {  // prefers cached memory, because the host reads results from it
    type =
        physical_.memory_type(needs.memoryTypeBits, kShared | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    if (type < 0) type = physical_.memory_type(needs.memoryTypeBits, kShared);
  } else {
    type = physical_.memory_type(needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  }
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = static_cast<uint32_t>(std::max(type, 0));
  result = type < 0 ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                    : vk_.AllocateMemory(device_, &allocate, nullptr, &block.memory);
  if (result == VK_SUCCESS) result = vk_.BindBufferMemory(device_, block.buffer, block.memory, 0);
  if (result == VK_SUCCESS && host) {
    void* mapped = nullptr;
    result = vk_.MapMemory(device_, block.memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    block.mapped = static_cast<char*>(mapped);
  }
  if (result != VK_SUCCESS) release(block);
  block.bytes = bytes;
  return result;
}

std::string Allocator::advice(VkDeviceSize bytes) const {
  backends::DeviceFacts facts = physical_.facts();
  std::string left = facts.available_memory < 0
                         ? ""
                         : megabytes(static_cast<VkDeviceSize>(facts.available_memory)) + " of ";
  return "Vulkan: no memory for " + megabytes(bytes) + " more on " + facts.name + ", which has " +
         left + megabytes(facts.memory) + (left.empty() ? "" : " left") +
         ". Take less of it: a smaller --context or --max-batch, or 4-bit weights "
         "(--quant q4f16_1)";
}

Block Allocator::device_block(VkDeviceSize bytes) const {
  Block block;
  VkResult result = make(bytes, false, block);
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    TVM_FFI_THROW(MemoryError) << advice(bytes) << ": " << name_of(result);
  }
  check(result, "vkAllocateMemory");
  return block;
}

Block Allocator::host_block(VkDeviceSize bytes) const {
  Block block;
  check(make(bytes, true, block), "vkAllocateMemory of host memory");
  return block;
}

void Allocator::release(const Block& block) const {
  vk_.DestroyBuffer(device_, block.buffer, nullptr);
  vk_.FreeMemory(device_, block.memory, nullptr);  // freeing the memory also unmaps it
}

Buffer* Pool::take(VkDeviceSize bytes) {
  VkDeviceSize rounded = std::max<VkDeviceSize>((bytes + alignment_ - 1) / alignment_, 1);
  rounded *= alignment_;
  // Kernels access whole 32-bit words, so a tensor's size is a multiple of 4 bytes.
  VkDeviceSize seen = std::max<VkDeviceSize>((bytes + 3) / 4 * 4, 4);
  for (const auto& shared : blocks_) {
    int64_t offset = shared->free.take(rounded);
    if (offset >= 0) return new Buffer{&shared->block, static_cast<VkDeviceSize>(offset), seen};
  }
  VkDeviceSize size = rounded > kBlockBytes / 4 ? rounded : kBlockBytes;
  Block block;
  try {
    block = allocator_.device_block(size);
  } catch (const tvm::ffi::Error&) {
    if (size == rounded) throw;
    size = rounded;  // memory is short, so allocate no more than the tensor needs
    block = allocator_.device_block(size);
  }
  blocks_.push_back(std::make_unique<Shared>(Shared{block, FreeList(size)}));
  blocks_.back()->free.take(rounded);
  return new Buffer{&blocks_.back()->block, 0, seen};
}

bool Pool::give(Buffer* buffer) {
  std::unique_ptr<Buffer> owned(buffer);
  for (const auto& shared : blocks_) {
    if (&shared->block != buffer->block) continue;
    VkDeviceSize units = (buffer->bytes + alignment_ - 1) / alignment_;
    shared->free.give(buffer->offset, units * alignment_);
    return !shared->free.is_empty();
  }
  return true;
}

void Pool::trim() {
  bool kept = false;  // true once one empty block of the usual size is kept for reuse
  auto unused = [&](const std::unique_ptr<Shared>& shared) {
    if (!shared->free.is_empty()) return false;
    if (!kept && shared->block.bytes == kBlockBytes) {
      kept = true;
      return false;
    }
    allocator_.release(shared->block);
    return true;
  };
  blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(), unused), blocks_.end());
}

}  // namespace wherry::vulkan
