#include "backends/webgpu/device.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>
#include <utility>

#include "backends/webgpu/imports.h"
#include "backends/webgpu/module.h"

namespace wherry::webgpu {

namespace {

constexpr size_t kWord = 4;  // bytes of a word, the unit of WebGPU's copies

void require_words(const char* what, size_t offset, size_t bytes) {
  if (offset % kWord == 0 && bytes % kWord == 0) return;
  TVM_FFI_THROW(ValueError) << what << " of " << bytes << " bytes at " << offset
                            << ": WebGPU copies multiples of " << kWord;
}

backends::DeviceList enumerate() {
  backends::DeviceList list;
  list.devices.push_back(std::make_unique<WebGpuDevice>());
  return list;
}

backends::Devices& devices() {
  static auto* all = new backends::Devices(kDLWebGPU, "WebGPU", "the page gave none", enumerate);
  return *all;
}

}  // namespace

uint32_t handle_of(const void* data) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data));
}

backends::DeviceFacts WebGpuDevice::facts() const {
  backends::DeviceFacts facts;
  facts.name = "WebGPU";
  facts.largest_buffer = static_cast<uint64_t>(wherry_gpu_largest_buffer());
  return facts;
}

void* WebGpuDevice::allocate(size_t bytes) {
  const size_t rounded_bytes = bytes == 0 ? kWord : (bytes + kWord - 1) / kWord * kWord;
  const uint32_t buffer = wherry_gpu_allocate(rounded_bytes);
  if (buffer == 0) {
    TVM_FFI_THROW(MemoryError) << "a buffer of " << bytes << " bytes; this browser's device binds "
                               << facts().largest_buffer;
  }
  return reinterpret_cast<void*>(static_cast<uintptr_t>(buffer));
}

void WebGpuDevice::free(void* data) {
  if (data != nullptr) wherry_gpu_free(handle_of(data));
}

void WebGpuDevice::copy(const void* from, size_t from_offset, void* to, size_t to_offset,
                        size_t bytes) {
  require_words("a copy", from_offset | to_offset, bytes);
  wherry_gpu_copy(handle_of(from), from_offset, handle_of(to), to_offset, bytes);
}

void WebGpuDevice::write(const char* host, void* to, size_t to_offset, size_t bytes) {
  if (bytes % kWord == 0) {
    require_words("a write", to_offset, bytes);
    return wherry_gpu_write(host, handle_of(to), to_offset, bytes);
  }
  std::string padded(host, bytes);  // pads the bytes; the buffer's size was rounded up, too
  padded.resize((bytes + kWord - 1) / kWord * kWord);
  require_words("a write", to_offset, padded.size());
  wherry_gpu_write(padded.data(), handle_of(to), to_offset, padded.size());
}

void WebGpuDevice::read(const void* from, size_t from_offset, char* host, size_t bytes) {
  if (wherry_gpu_read(handle_of(from), from_offset, host, bytes) == 0) {
    TVM_FFI_THROW(RuntimeError) << bytes << " bytes of a GPU's buffer have not come: in a page, "
                                << "results are asked for, waited for outside, and then read";
  }
}

void WebGpuDevice::start(const void* from, size_t from_offset, size_t bytes) {
  require_words("a read", from_offset, bytes);
  wherry_gpu_start(handle_of(from), from_offset, bytes);
}

void WebGpuDevice::wait() {
  TVM_FFI_THROW(RuntimeError) << "a page cannot wait for its GPU inside a call";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("device_api.webgpu",
                  [](tvm::ffi::PackedArgs, tvm::ffi::Any* result) {
                    tvm::runtime::DeviceAPI* api = &devices();
                    *result = static_cast<void*>(api);
                  })
      .def("wherry.webgpu.start", [](const tvm::ffi::Tensor& tensor) { devices().start(tensor); })
      .def("ffi.Module.load_from_bytes.webgpu", load_module);
}

}  // namespace wherry::webgpu
