// One queue: commands are recorded, and handed to the device when someone waits, or when there are
// many.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_STREAM_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_STREAM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/memory.h"

namespace wherry::vulkan {

// A part of device memory that a command uses.
struct Access {
  const Block* block;
  VkDeviceSize begin, end;
  bool written;
};

// Memory of the host until the device has done the commands that were recorded with it.
struct Staged {
  VkBuffer buffer;
  VkDeviceSize offset;
  char* host;
};

class Stream {
 public:
  static constexpr VkDeviceSize kStagingBytes = VkDeviceSize{1} << 20;  // that a batch can stage

  // alignment: of what is staged, for uniforms.
  Stream(VkDevice device, VkQueue queue, uint32_t family, const DeviceFunctions& vk,
         const Allocator& allocator, VkDeviceSize alignment);

  // Makes room for a command that stages so many bytes (up to kStagingBytes) and whose kernel takes
  // so many tensors. What follows goes into one batch until the next call.
  void reserve(VkDeviceSize staged_bytes, uint32_t tensors);
  Staged stage(VkDeviceSize bytes);
  VkDescriptorSet descriptors(VkDescriptorSetLayout layout);
  // The command buffer to record into, after a barrier if the command conflicts with earlier ones:
  // one of the two writes what the other uses.
  VkCommandBuffer record(const std::vector<Access>& accesses);

  // Hands over what was recorded; when that is done, the host may see what copies wrote into its
  // memory. Does not wait: gives what wait_for() takes.
  uint64_t start_to_read();
  // Returns when what was handed over then is done; what came later may be under way.
  void wait_for(uint64_t handed_over);
  // Hands over what was recorded and returns when all is done.
  void wait();

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkDescriptorPool descriptors = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    Block staging;
    VkDeviceSize staged = 0;
    uint32_t count = 0;    // of commands
    uint32_t tensors = 0;  // of their descriptors
    bool running = false;  // handed over and not waited for
    uint64_t number = 0;   // of those that were handed over
  };
  static constexpr uint32_t kMostCommands = 64;   // of a batch: the device starts while we record
  static constexpr uint32_t kMostTensors = 1024;  // of a batch
  static constexpr size_t kMostAccesses = 64;     // that are compared with

  void make(Batch& batch, VkCommandPool pool, const Allocator& allocator);
  Batch& open();  // the current batch, which records
  void barrier(VkPipelineStageFlags to, VkAccessFlags access);
  void submit();
  void finish(Batch& batch);

  VkDevice device_;
  VkQueue queue_;
  const DeviceFunctions& vk_;
  VkDeviceSize alignment_;
  std::array<Batch, 16> batches_;  // two steps of a model
  size_t current_ = 0;
  bool recording_ = false;
  uint64_t handed_over_ = 0;      // batches
  std::vector<Access> accesses_;  // since the last barrier
};

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_STREAM_H_
