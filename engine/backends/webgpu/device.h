// The browser's GPU as a device of TVM's runtime; the page's script maps handles to buffers.
#ifndef WHERRY_ENGINE_BACKENDS_WEBGPU_DEVICE_H_
#define WHERRY_ENGINE_BACKENDS_WEBGPU_DEVICE_H_

#include "backends/devices.h"

namespace wherry::webgpu {

// Returns the page's buffer handle that a tensor's data pointer contains.
uint32_t handle_of(const void* data);

class WebGpuDevice final : public backends::Device {
 public:
  backends::DeviceFacts facts() const override;
  void* allocate(size_t bytes) override;
  void free(void* data) override;
  void copy(const void* from, size_t from_offset, void* to, size_t to_offset,
            size_t bytes) override;
  void write(const char* host, void* to, size_t to_offset, size_t bytes) override;
  // Reads bytes that `start` requested. Throws if they were not requested, or if the page's script
  // has not waited for them yet.
  void read(const void* from, size_t from_offset, char* host, size_t bytes) override;
  void start(const void* from, size_t from_offset, size_t bytes) override;
  // Always throws: in a browser no call can wait.
  void wait() override;
};

}  // namespace wherry::webgpu

#endif  // WHERRY_ENGINE_BACKENDS_WEBGPU_DEVICE_H_
