// Metal devices: memory, copies and kernel launches.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_DEVICE_H_
#define WHERRY_ENGINE_BACKENDS_METAL_DEVICE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/devices.h"
#include "backends/metal/api.h"
#include "backends/metal/memory.h"
#include "backends/metal/stream.h"

namespace wherry::metal {

// A tensor argument of a launch.
struct Argument {
  Buffer* buffer;
  bool written;
};

// One launch of a kernel: its tensors at the indices from 0, then its numbers.
struct Launch {
  Id pipeline;  // MTLComputePipelineState
  std::vector<Argument> tensors;
  std::vector<uint64_t> numbers;  // eight bytes each; the kernel may read less
  Size groups, threads;           // the grid in threadgroups, and a group's threads
};

// The GPU. Host and device share its memory, so that copies to and from the host are made by the
// host where no command uses the memory.
class MetalDevice final : public backends::Device {
 public:
  // device: MTLDevice. Throws an error of tvm-ffi.
  explicit MetalDevice(Own device);

  Id handle() const { return device_.get(); }
  std::string name() const;
  bool supports_family(Int family) const;
  void launch(const Launch& launch);

  backends::DeviceFacts facts() const override;
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
  // An asynchronous copy that `start` requested; `here` is null if there is no result to take.
  struct Fetched {
    std::unique_ptr<Buffer> here;
    const void* from = nullptr;
    size_t offset = 0, bytes = 0;
  };
  // Held while a call of this class runs.
  struct Call {
    explicit Call(MetalDevice& device) : lock(device.mutex_) {}
    AutoreleasePool pool;
    std::lock_guard<std::mutex> lock;
  };

  // Returns a buffer that the host may write; throws a MemoryError.
  std::unique_ptr<Buffer> idle_buffer(size_t bytes);
  void record_copy(Buffer& from, size_t from_offset, Buffer& to, size_t to_offset, size_t bytes);
  void drop(Fetched& fetched);
  [[noreturn]] void refuse(size_t bytes) const;

  Own device_;
  std::mutex mutex_;  // guards every field below
  Stream stream_;
  Memory memory_;
  size_t tensors_ = 0;  // allocated and not freed
  std::array<Fetched, 2> fetched_;
  size_t fetch_turn_ = 0;
};

// Returns this machine's GPU.
backends::Devices& devices();

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_DEVICE_H_
