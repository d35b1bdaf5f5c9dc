// A "CUDA device" for TVM's run time: memory of this process, which is NaNs before it is written
// and after it is freed. emulator.cc runs the kernels, driver.cc captures them.
#include <tvm/ffi/function.h>
#include <tvm/runtime/device_api.h>

#include <cstdlib>
#include <cstring>

#include "driver.h"
#include "queue.h"

namespace emulator {
namespace {

class Device final : public tvm::runtime::DeviceAPI {
 public:
  void SetDevice(DLDevice) override { set_context(); }
  void GetAttr(DLDevice device, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) override {
    if (kind == tvm::runtime::kExist) *result = device.device_id == 0 ? 1 : 0;
  }
  using DeviceAPI::AllocDataSpace;
  void* AllocDataSpace(DLDevice, size_t bytes, size_t, DLDataType) override {
    refuse_while_capturing("cudaMalloc");
    set_context();
    const size_t padded = (bytes + 256) / 256 * 256;
    void* memory = std::memset(std::aligned_alloc(256, padded), 0xff, padded);
    add_allocation(memory, padded);
    return memory;
  }
  void FreeDataSpace(DLDevice, void* data) override {
    refuse_while_capturing("cudaFree");
    set_context();
    wait_for_all();
    remove_allocation(data);
    std::free(data);
  }
  void StreamSync(DLDevice, TVMStreamHandle) override { wait_for_all(); }

 protected:
  using DeviceAPI::CopyDataFromTo;
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset,
                      size_t bytes, DLDevice from_device, DLDevice to_device, DLDataType,
                      TVMStreamHandle) override {
    refuse_while_capturing("a copy that the graph would not have");
    if (bytes == 0) return;
    set_context();
    char* there = static_cast<char*>(to) + to_offset;
    const char* here = static_cast<const char*>(from) + from_offset;
    // A copy from or to memory of the host that the driver does not know may wait for all before
    // it.
    const bool inside = from_device.device_type != kDLCPU && to_device.device_type != kDLCPU;
    if (inside) return ask([=] { std::memmove(there, here, bytes); });
    wait_for_all();
    std::memmove(there, here, bytes);
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
