// One Vulkan queue. The stream records commands into batches, and submits a batch when a call waits
// or the batch is full.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_STREAM_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_STREAM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/memory.h"

namespace wherry::vulkan {

// A range of device memory that a command reads or writes.
struct Access {
  const Block* block;
  VkDeviceSize begin, end;
  bool written;
};

// Host memory that stays valid until the commands recorded with it have ended.
struct Staged {
  VkBuffer buffer;
  VkDeviceSize offset;
  char* host;
};

class Stream {
 public:
  // Bytes of staging memory per batch.
  static constexpr VkDeviceSize kStagingBytes = VkDeviceSize{1} << 20;

  // alignment: bytes to which staged data is aligned, as uniforms require.
  Stream(VkDevice device, VkQueue queue, uint32_t family, const DeviceFunctions& vk,
         const Allocator& allocator, VkDeviceSize alignment);

  // Reserves room for a command with this many staged bytes (up to kStagingBytes) and tensors. The
  // commands until the next call of reserve() go into one batch.
  void reserve(VkDeviceSize staged_bytes, uint32_t tensors);
  Staged stage(VkDeviceSize bytes);
  VkDescriptorSet descriptors(VkDescriptorSetLayout layout);
  // Returns the command buffer to record into. Adds a barrier first if the command conflicts with
  // earlier ones: one of them writes memory that the other uses.
  VkCommandBuffer record(const std::vector<Access>& accesses);

  // Submits the recorded commands, followed by a barrier that makes copies visible to the host.
  // Returns the number of the batch for wait_for(), without waiting.
  uint64_t start_to_read();
  // Waits for the batch of this number; later batches may still run.
  void wait_for(uint64_t handed_over);
  // Submits the recorded commands and waits until all commands are done.
  void wait();

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkDescriptorPool descriptors = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    Block staging;
    VkDeviceSize staged = 0;
    uint32_t count = 0;    // number of recorded commands
    uint32_t tensors = 0;  // number of tensor descriptors of the commands
    bool running = false;  // true if the batch was submitted and not yet waited for
    uint64_t number = 0;   // sequence number of the submission
  };
  // Upper bound on commands in a batch; small, so that the device starts early.
  static constexpr uint32_t kMostCommands = 64;
  static constexpr uint32_t kMostTensors = 1024;  // upper bound on tensor descriptors in a batch
  // Upper bound on accesses to compare with; more force a barrier.
  static constexpr size_t kMostAccesses = 64;

  void make(Batch& batch, VkCommandPool pool, const Allocator& allocator);
  Batch& open();  // returns the batch that is being recorded
  void barrier(VkPipelineStageFlags to, VkAccessFlags access);
  void submit();
  void finish(Batch& batch);

  VkDevice device_;
  VkQueue queue_;
  const DeviceFunctions& vk_;
  VkDeviceSize alignment_;
  std::array<Batch, 16> batches_;  // enough batches for two steps of a model
  size_t current_ = 0;
  bool recording_ = false;
  uint64_t handed_over_ = 0;      // number of submitted batches
  std::vector<Access> accesses_;  // memory accesses since the last barrier
};

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_STREAM_H_
