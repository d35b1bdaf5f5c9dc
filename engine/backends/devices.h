// The interface of our plugins to TVM's runtime: the devices of one kind.
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

// The properties of a device. Sizes are in bytes.
struct DeviceFacts {
  std::string name;
  std::string driver;
  bool discrete = false;         // it has its own memory, which the host does not share
  bool software = false;         // a CPU implementation
  uint64_t memory = 0;           // total
  int64_t available_memory = 0;  // free memory; -1: the driver does not report it
  uint64_t largest_buffer = 0;   // largest buffer of a kernel
  int64_t threads_per_block = 0;
  int64_t shared_memory = 0;  // of a thread block
  int64_t warp_size = 1;
  int64_t units = 0;      // compute units; 0: unknown
  int64_t clock_khz = 0;  // 0: unknown
};

// One device. `allocate` returns the data pointer for a tensor, which is a handle, not an address.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceFacts facts() const = 0;

  // Throws a MemoryError of tvm-ffi.
  virtual void* allocate(size_t bytes) = 0;
  // Running commands may still use the memory: a device executes calls in order. Throws if the
  // device was lost, which frees its memory.
  virtual void free(void* data) = 0;

  // Copies of bytes between ranges that do not overlap. After `write` returns, the host may change
  // its bytes; `read` waits for the copy.
  virtual void copy(const void* from, size_t from_offset, void* to, size_t to_offset,
                    size_t bytes) = 0;
  virtual void write(const char* host, void* to, size_t to_offset, size_t bytes) = 0;
  virtual void read(const void* from, size_t from_offset, char* host, size_t bytes) = 0;

  // Submits all commands so far and an asynchronous copy of these bytes to the host; returns at
  // once. `take` waits for this copy alone. Without `take`, the copy is dropped when the memory is
  // freed, or at the second `start` after it.
  virtual void start(const void* from, size_t from_offset, size_t bytes) = 0;
  // False: the copy was not started or was dropped, or the device cannot wait and has only `read`.
  virtual bool take(const void*, size_t, char*, size_t) { return false; }

  // Waits until all commands are done.
  virtual void wait() = 0;
};

// The devices that were found, best first.
struct FoundDevices {
  std::vector<std::unique_ptr<Device>> devices;
  std::string problems;  // one line for each device that does not work, or each error of the search
};

// Searches for devices at the first use and keeps them until the process ends.
class Devices final : public tvm::runtime::DeviceAPI {
 public:
  // title: "OpenCL"; hint: what to install if there is none. `find` may throw errors of tvm-ffi.
  Devices(DLDeviceType type, std::string title, std::string hint,
          std::function<FoundDevices()> find);

  // Throws a RuntimeError of tvm-ffi if there is no such device.
  Device& device(int index);
  static int current();  // set by SetDevice, for this thread
  // `Device::start` and `take` for a tensor of one of the devices.
  void start(const tvm::ffi::Tensor& tensor);
  void take(const tvm::ffi::Tensor& tensor, const tvm::ffi::Tensor& host);

  // {"devices": [{"name": ..., "memory": ...}, ...], "problems": "..."}, with the facts of each
  // device.
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
