// A "CUDA device" for TVM's run time: memory of this process, which is NaNs before it is written
// and after it is freed. emulator.cc runs the kernels, driver.cc captures them.
#include <tvm/ffi/function.h>
#include <tvm/runtime/device_api.h>

#include <cstdlib>
#include <cstring>

#include "driver.h"

namespace emulator {
namespace {

class Device final : public tvm::runtime::DeviceAPI {
 public:
  void SetDevice(DLDevice) override {}
  void GetAttr(DLDevice device, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) override {
    if (kind == tvm::runtime::kExist) *result = device.device_id == 0 ? 1 : 0;
  }
  using DeviceAPI::AllocDataSpace;
  void* AllocDataSpace(DLDevice, size_t bytes, size_t, DLDataType) override {
    refuse_while_capturing("cudaMalloc");
    const size_t whole = (bytes + 256) / 256 * 256;
    void* memory = std::memset(std::aligned_alloc(256, whole), 0xff, whole);
    add_allocation(memory, whole);
    return memory;
  }
  void FreeDataSpace(DLDevice, void* data) override {
    refuse_while_capturing("cudaFree");
    remove_allocation(data);
    std::free(data);
  }
  void StreamSync(DLDevice, TVMStreamHandle) override {}

 protected:
  using DeviceAPI::CopyDataFromTo;
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset,
                      size_t bytes, DLDevice from_device, DLDevice, DLDataType,
                      TVMStreamHandle) override {
    refuse_while_capturing("a copy that the graph would not have");
    if (bytes == 0) return;
    char* there = static_cast<char*>(to) + to_offset;
    std::memmove(there, static_cast<const char*>(from) + from_offset, bytes);
    if (from_device.device_type == kDLCPU) note_write(there, bytes);
  }
};

TVM_FFI_STATIC_INIT_BLOCK() {
  // In the place of the real one, if there is one.
  auto device = [](tvm::ffi::PackedArgs, tvm::ffi::Any* result) {
    static tvm::runtime::DeviceAPI* device = new Device;
    *result = static_cast<void*>(device);
  };
  tvm::ffi::Function::SetGlobal("device_api.cuda", tvm::ffi::Function::FromPacked(device), true);
}

}  // namespace
}  // namespace emulator
