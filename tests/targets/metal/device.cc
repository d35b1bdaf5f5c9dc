// A "Metal device" for TVM's runtime, whose memory is in this process; emulator.cc runs its
// kernels.
#include <tvm/ffi/function.h>
#include <tvm/runtime/device_api.h>

#include <cstring>

#include "memory.h"

namespace emulator {
namespace {

constexpr DLDeviceType kDevice = kDLMetal;
constexpr const char* kName = "device_api.metal";

class Device final : public tvm::runtime::DeviceAPI {
 public:
  void SetDevice(DLDevice) override {}
  void GetAttr(DLDevice device, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) override {
    if (kind == tvm::runtime::kExist) *result = device.device_id == 0 ? 1 : 0;
  }
  using DeviceAPI::AllocDataSpace;
  void* AllocDataSpace(DLDevice, size_t bytes, size_t, DLDataType) override {
    auto* buffer = new Buffer;
    buffer->bytes.assign(bytes, 0xff);  // NaNs, to find reads of unwritten memory
    return buffer;
  }
  void FreeDataSpace(DLDevice, void* data) override { delete static_cast<Buffer*>(data); }
  void StreamSync(DLDevice, TVMStreamHandle) override {}

 protected:
  using DeviceAPI::CopyDataFromTo;
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset,
                      size_t bytes, DLDevice from_device, DLDevice to_device, DLDataType,
                      TVMStreamHandle) override {
    if (bytes == 0) return;
    auto at = [](const void* data, size_t offset, DLDevice device) {
      void* memory = const_cast<void*>(data);
      if (device.device_type == kDevice) memory = static_cast<Buffer*>(memory)->bytes.data();
      return static_cast<char*>(memory) + offset;
    };
    std::memmove(at(to, to_offset, to_device), at(from, from_offset, from_device), bytes);
  }
};

TVM_FFI_STATIC_INIT_BLOCK() {
  // Registers this device in place of the real Metal device, if TVM's runtime has one.
  auto device = [](tvm::ffi::PackedArgs, tvm::ffi::Any* result) {
    static tvm::runtime::DeviceAPI* device = new Device;
    *result = static_cast<void*>(device);
  };
  tvm::ffi::Function::SetGlobal(kName, tvm::ffi::Function::FromPacked(device), true);
}

}  // namespace
}  // namespace emulator
