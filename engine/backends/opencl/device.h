// OpenCL devices as TVM's run time sees them: memory, copies, a queue each.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_DEVICE_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_DEVICE_H_

#include <tvm/runtime/device_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/opencl/api.h"

namespace wherry::opencl {

// What a tensor's data pointer points to on these devices.
struct Buffer {
  Memory memory;
  size_t bytes;  // allocated
};

// Buffers that were freed, by size. Returned to their next user without waiting: a device has one
// queue, which runs commands in order.
class Pool {
 public:
  // Allocated sizes are multiples of 1/8 of their power of two, so that near sizes share.
  static size_t rounded(size_t bytes);

  // Null if there is none.
  Buffer* take(size_t rounded_bytes);
  void give(Buffer* buffer);
  void clear();

 private:
  static constexpr size_t kMostBytes = size_t{256} << 20;  // kept in all
  std::multimap<size_t, std::unique_ptr<Buffer>> free_;
  size_t bytes_ = 0;
};

// One device with its context and queue.
class Device {
 public:
  // Throws an error of tvm-ffi if the driver gives no context or queue.
  explicit Device(DeviceId id);

  Context context() const { return context_; }
  Queue queue() const { return queue_; }
  DeviceId id() const { return id_; }

  Buffer* allocate(size_t bytes);
  void free(Buffer* buffer);

  template <typename T>
  T number(Uint key) const {
    T value{};
    check(Api::get().GetDeviceInfo(id_, key, sizeof value, &value, nullptr), "clGetDeviceInfo");
    return value;
  }
  std::string text(Uint key) const;
  bool has_extension(const std::string& name) const;
  // Name, vendor, versions: what a program's binary depends on.
  std::string identity() const;

 private:
  DeviceId id_;
  Context context_;
  Queue queue_;
  std::mutex mutex_;  // of pool_
  Pool pool_;
};

// The devices of this machine: its GPUs and accelerators, else its CPUs; found at the first use,
// and kept until the process ends.
class Devices final : public tvm::runtime::DeviceAPI {
 public:
  static Devices& get();

  Device& device(int index);
  static int current();  // set by SetDevice, for this thread

  void SetDevice(DLDevice device) override;
  void GetAttr(DLDevice device, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) override;
  using DeviceAPI::AllocDataSpace;
  void* AllocDataSpace(DLDevice device, size_t bytes, size_t alignment, DLDataType type) override;
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
  void find();
  std::once_flag found_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::string problems_;  // of devices that are there and do not work, a line each
};

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_DEVICE_H_
