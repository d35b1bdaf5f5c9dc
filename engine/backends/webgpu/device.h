// The page's GPU as a device of TVM's run time: buffers are handles that its script knows.
#ifndef WHERRY_ENGINE_BACKENDS_WEBGPU_DEVICE_H_
#define WHERRY_ENGINE_BACKENDS_WEBGPU_DEVICE_H_

#include "backends/devices.h"

namespace wherry::webgpu {

// A tensor's data pointer there.
uint32_t handle_of(const void* data);

class WebGpuDevice final : public backends::Device {
 public:
  backends::DeviceFacts facts() const override;
  void* allocate(size_t bytes) override;
  void free(void* data) override;
  void copy(const void* from, size_t from_offset, void* to, size_t to_offset,
            size_t bytes) override;
  void write(const char* host, void* to, size_t to_offset, size_t bytes) override;
  // Throws if the bytes were not asked for by `start`, or nobody has waited since.
  void read(const void* from, size_t from_offset, char* host, size_t bytes) override;
  void start(const void* from, size_t from_offset, size_t bytes) override;
  // Throws: a page cannot wait inside a call.
  void wait() override;
};

}  // namespace wherry::webgpu

#endif  // WHERRY_ENGINE_BACKENDS_WEBGPU_DEVICE_H_
