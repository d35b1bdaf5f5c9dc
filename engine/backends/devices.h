// The devices of one kind (OpenCL, Vulkan, WebGPU) as a plugin of TVM's runtime.
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
  bool discrete = false;  // true if the device has its own memory, which the host does not share
  bool software = false;  // true if a CPU implements the device
  uint64_t memory = 0;    // total memory of the device
  int64_t available_memory = 0;  // free memory; -1 if the driver does not report it
  uint64_t largest_buffer = 0;   // largest buffer that a kernel can bind
  int64_t threads_per_block = 0;
  int64_t shared_memory = 0;  // bytes of shared memory of a thread block
  int64_t warp_size = 1;
  int64_t units = 0;      // number of compute units; 0 if unknown
  int64_t clock_khz = 0;  // 0 if unknown
};

// One device. `allocate` returns the data pointer for a tensor, which is a handle, not an address.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceFacts facts() const = 0;

  // Allocates device memory. Throws a MemoryError of tvm-ffi.
  virtual void* allocate(size_t bytes) = 0;
  // Frees memory that running commands may still use: a device executes calls in order. Throws if
  // the device was lost, which frees its memory.
  virtual void free(void* data) = 0;

  // Copy bytes between ranges that do not overlap. After `write` returns, the host may change its
  // bytes; `read` waits for the copy.
  virtual void copy(const void* from, size_t from_offset, void* to, size_t to_offset,
                    size_t bytes) = 0;
  virtual void write(const char* host, void* to, size_t to_offset, size_t bytes) = 0;
  virtual void read(const void* from, size_t from_offset, char* host, size_t bytes) = 0;

  // Submits all commands so far and an asynchronous copy of these bytes to the host; returns at
  // once. `take` waits for this copy alone. Without `take`, the copy is dropped when the memory is
  // freed, or at the second `start` after it.
  virtual void start(const void* from, size_t from_offset, size_t bytes) = 0;
  // Waits for a started copy and returns its bytes. Returns false if the copy was not started or
  // was dropped, or if the device cannot wait and has only `read`.
  virtual bool take(const void*, size_t, char*, size_t) { return false; }

  // Waits until the device has executed all commands.
  virtual void wait() = 0;
};

// The devices that a search found, the best first.
struct DeviceList {
  std::vector<std::unique_ptr<Device>> devices;
  std::string problems;  // one line for each device that does not work, or each error of the search
};

// Searches for devices at the first use and keeps them until the process ends.
class Devices final : public tvm::runtime::DeviceAPI {
 public:
  // title: the kind's name, e.g. "OpenCL"; hint: what to install if there is no device. `find` may
  // throw errors of tvm-ffi.
  Devices(DLDeviceType type, std::string title, std::string hint, std::function<DeviceList()> find);

  // Returns the device with this index. Throws a RuntimeError of tvm-ffi if it does not exist.
  Device& device(int index);
  static int current();  // index of this thread's device, as SetDevice set it
  // Calls `Device::start` or `Device::take` for a tensor of one of the devices.
  void start(const tvm::ffi::Tensor& tensor);
  void take(const tvm::ffi::Tensor& tensor, const tvm::ffi::Tensor& host);

  // Returns the devices' properties as JSON: {"devices": [{"name": ..., "memory": ...}, ...],
  // "problems": "..."}.
  std::string to_json();

  void SetDevice(DLDevice device) override;
  void GetAttr(DLDevice device, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) override;
  using DeviceAPI::AllocDataSpace;
  void* AllocDataSpace(DLDevice device, size_t bytes, size_t alignment, DLDataType type) override;
  // Frees a tensor's memory; never throws, because destructors call it.
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
  const DeviceList& list();

  DLDeviceType type_;
  std::string title_, hint_;
  std::function<DeviceList()> find_;
  std::once_flag once_;
  DeviceList list_;
};

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_DEVICES_H_
