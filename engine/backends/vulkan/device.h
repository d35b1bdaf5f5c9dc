// One Vulkan device: its memory, copies and kernel launches.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_DEVICE_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_DEVICE_H_

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/devices.h"
#include "backends/vulkan/memory.h"
#include "backends/vulkan/physical.h"
#include "backends/vulkan/stream.h"

namespace wherry::vulkan {

// A kernel compiled for one device. Its descriptors are its tensors in order, then its numbers.
struct Pipeline {
  VkDescriptorSetLayout tensors = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline handle = VK_NULL_HANDLE;
};

// A tensor argument of a launch.
struct Argument {
  const Buffer* buffer;
  bool written;
};

// One Vulkan device; it opens the logical device at the first use, so that listing devices is
// cheap.
class VulkanDevice final : public backends::Device {
 public:
  explicit VulkanDevice(PhysicalDevice physical);

  const PhysicalDevice& physical() const { return physical_; }

  // Return the logical device and its functions; the first call opens the device.
  VkDevice handle();
  const DeviceFunctions& functions();

  // Launches a kernel on groups[0] x groups[1] x groups[2] blocks; numbers: the 32-bit words of the
  // kernel's uniform.
  void launch(const Pipeline& pipeline, const std::vector<Argument>& arguments,
              const std::vector<uint32_t>& numbers, const std::array<uint32_t, 3>& groups);

  backends::DeviceFacts facts() const override { return physical_.facts(); }
  void* allocate(size_t bytes) override;
  void free(void* data) override;
  void copy(const void* from, size_t from_offset, void* to, size_t to_offset,
            size_t bytes) override;
  void write(const char* host, void* to, size_t to_offset, size_t bytes) override;
  void read(const void* from, size_t from_offset, char* host, size_t bytes) override;
  void start(const void* from, size_t from_offset, size_t bytes) override;
  bool take(const void* from, size_t from_offset, char* host, size_t bytes) override;
  void wait() override;

 private:
  // The Vulkan objects of the opened device.
  struct Opened {
    Opened(const PhysicalDevice& physical, VkDevice device);

    VkDevice device;
    DeviceFunctions vk;
    Allocator allocator;
    Pool pool;
    Stream stream;
  };
  // An asynchronous copy to host memory, requested by `start`; the memory grows as needed.
  struct Fetched {
    Block here;
    const void* from = nullptr;  // source of the copy; null if there is no result to take
    size_t offset = 0, bytes = 0;
    uint64_t handed_over = 0;
  };
  Opened& opened();

  PhysicalDevice physical_;
  std::once_flag once_;
  std::unique_ptr<Opened> opened_;  // the opened device, which is never closed: see devices()
  std::mutex mutex_;                // guards pool, stream and copies
  std::array<Fetched, 2> fetched_;
  size_t fetch_turn_ = 0;
};

// Returns this machine's Vulkan devices.
backends::Devices& devices();

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_DEVICE_H_
