// The devices of one kind, as TVM's run time sees them; what is common to all our plugins.
#ifndef WHERRY_ENGINE_BACKENDS_DEVICES_H_
#define WHERRY_ENGINE_BACKENDS_DEVICES_H_

#include <tvm/ffi/container/tensor.h>
#include <tvm/runtime/device_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace wherry::backends {

// What a device says about itself. Sizes are bytes.
struct DeviceFacts {
  std::string name;
  std::string driver;
  bool discrete = false;         // with memory of its own, which the host does not share
  bool software = false;         // a CPU that plays a GPU
  uint64_t memory = 0;           // in all
  int64_t available_memory = 0;  // what is left of it; -1: the driver does not tell
  uint64_t largest_buffer = 0;   // that a kernel may use
  int64_t threads_per_block = 0;
  int64_t shared_memory = 0;  // of a block
  int64_t warp_size = 1;
  int64_t units = 0;      // that run blocks; 0: unknown
  int64_t clock_khz = 0;  // 0: unknown
};

// One device. What `allocate` returns is a tensor's data pointer there: a handle, not an address.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceFacts facts() const = 0;

  // Throws a MemoryError of tvm-ffi.
  virtual void* allocate(size_t bytes) = 0;
  // Commands under way may still use it: a device works in the order of the calls. Throws if the
  // device was lost; the memory is then given up with it.
  virtual void free(void* data) = 0;

  // Bytes, between places that do not overlap. `write` has taken the host's bytes when it returns,
  // `read` has waited for them.
  virtual void copy(const void* from, size_t from_offset, void* to, size_t to_offset,
                    size_t bytes) = 0;
  virtual void write(const char* host, void* to, size_t to_offset, size_t bytes) = 0;
  virtual void read(const void* from, size_t from_offset, char* host, size_t bytes) = 0;

  // Hands everything asked for so far to the device, and begins to bring these bytes, as they are
  // then, to the host. Returns at once. `take` waits for no more than them; without it they are
  // given up when the memory is freed, or for the next but one that is started.
  virtual void start(const void* from, size_t from_offset, size_t bytes) = 0;
  // False: they were not started, or given up; or it has only `read`, because nobody can wait.
  virtual bool take(const void*, size_t, char*, size_t) { return false; }

  // Returns when all is done.
  virtual void wait() = 0;
};

// Those that were found, best first.
struct FoundDevices {
  std::vector<std::unique_ptr<Device>> devices;
  std::string problems;  // of devices that are there and do not work, or of finding; a line each
};

// Looked for at the first use, kept until the process ends.
class Devices final : public tvm::runtime::DeviceAPI {
 public:
  // title: "OpenCL"; hint: what to install where there is none. `find` may throw errors of tvm-ffi.
  Devices(DLDeviceType type, std::string title, std::string hint,
          std::function<FoundDevices()> find);

  // Throws a RuntimeError of tvm-ffi: there is no such device.
  Device& device(int index);
  static int current();  // set by SetDevice, for this thread
  // `Device::start` and `take` for a tensor of one of them.
  void start(const tvm::ffi::Tensor& tensor);
  void take(const tvm::ffi::Tensor& tensor, const tvm::ffi::Tensor& host);

  // {"devices": [{"name": ..., "memory": ...}, ...], "problems": "..."}, facts of each.
  std::string to_json();

  void SetDevice(DLDevice device) override;
  void GetAttr(DLDevice device, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) override;
  using DeviceAPI::AllocDataSpace;
  void* AllocDataSpace(DLDevice device, size_t bytes, size_t alignment, DLDataType type) override;
  // Never throws: tensors are freed in destructors.
  void FreeDataSpace(DLDevice device, void* data) override;
  void* AllocWorkspace(DLDevice device, size_t bytes, DLDataType type) override;
  void FreeWorkspace(DLDevice device, void* data) override;
  void StreamSync(DLDevice device, TVMStreamHandle stream) override;

 protected:
  using DeviceAPI::CopyDataFromTo;
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset,
                      size_t bytes, DLDevice from_device, DLDevice to_device, DLDataType type,
                      TVMStreamHandle stream) override;

 private:
  const FoundDevices& found();

  DLDeviceType type_;
  std::string title_, hint_;
  std::function<FoundDevices()> find_;
  std::once_flag once_;
  FoundDevices found_;
};

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_DEVICES_H_
