// One queue. It records commands into batches, and submits a batch when a call waits or the batch
// is full.
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

// Host memory that is valid until the commands recorded with it have ended.
struct Staged {
  VkBuffer buffer;
  VkDeviceSize offset;
  char* host;
};

class Stream {
 public:
  static constexpr VkDeviceSize kStagingBytes = VkDeviceSize{1} << 20;  // staged in a batch

  // alignment: of staged bytes, as uniforms need it.
  Stream(VkDevice device, VkQueue queue, uint32_t family, const DeviceFunctions& vk,
         const Allocator& allocator, VkDeviceSize alignment);

  // Reserves room for a command with this many staged bytes (up to kStagingBytes) and tensors.
  // Commands until the next call of reserve() go into one batch.
  void reserve(VkDeviceSize staged_bytes, uint32_t tensors);
  Staged stage(VkDeviceSize bytes);
  VkDescriptorSet descriptors(VkDescriptorSetLayout layout);
  // Returns the command buffer to record into. Adds a barrier first if the command conflicts with
  // earlier ones: one of them writes memory that the other uses.
  VkCommandBuffer record(const std::vector<Access>& accesses);

  // Submits the recorded commands, with a barrier that makes copies visible to the host at their
  // end. Returns the number of the batch for wait_for(), without waiting.
  uint64_t start_to_read();
  // Waits for the batch of this number; later batches may still run.
  void wait_for(uint64_t handed_over);
  // Submits the recorded commands and waits until all are done.
  void wait();

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkDescriptorPool descriptors = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    Block staging;
    VkDeviceSize staged = 0;
    uint32_t count = 0;    // commands
    uint32_t tensors = 0;  // tensor descriptors of the commands
    bool running = false;  // submitted and not waited for
    uint64_t number = 0;   // sequence number of the submission
  };
  static constexpr uint32_t kMostCommands = 64;   // in a batch: the device starts early
  static constexpr uint32_t kMostTensors = 1024;  // in a batch
  static constexpr size_t kMostAccesses = 64;     // to compare with; more force a barrier

  void make(Batch& batch, VkCommandPool pool, const Allocator& allocator);
  Batch& open();  // the batch that is being recorded
  void barrier(VkPipelineStageFlags to, VkAccessFlags access);
  void submit();
  void finish(Batch& batch);

  VkDevice device_;
  VkQueue queue_;
  const DeviceFunctions& vk_;
  VkDeviceSize alignment_;
  std::array<Batch, 16> batches_;  // enough for two steps of a model
  size_t current_ = 0;
  bool recording_ = false;
  uint64_t handed_over_ = 0;      // number of submitted batches
  std::vector<Access> accesses_;  // since the last barrier
};

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_STREAM_H_
