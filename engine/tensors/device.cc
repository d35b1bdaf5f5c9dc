#include "tensors/device.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "support/error.h"
#include "system/pages.h"

namespace wherry {

namespace {

constexpr std::pair<const char*, DLDeviceType> kKinds[] = {
    {"cpu", kDLCPU},     {"cuda", kDLCUDA},     {"opencl", kDLOpenCL}, {"vulkan", kDLVulkan},
    {"metal", kDLMetal}, {"webgpu", kDLWebGPU}, {"rocm", kDLROCM}};

[[noreturn]] void no_memory(size_t bytes) {
  throw Error(WHERRY_OUT_OF_MEMORY, concat("no memory for a tensor of ", bytes, " bytes"));
}

struct HostAllocation {
  void AllocData(DLTensor* tensor) {
    size_t bytes = ffi::GetDataSize(*tensor);
    block = std::calloc(1, bytes + kAlignment);
    if (block == nullptr) no_memory(bytes);
    uintptr_t address = reinterpret_cast<uintptr_t>(block);
    tensor->data = static_cast<char*>(block) + (kAlignment - address % kAlignment);
  }
  void FreeData(DLTensor*) { std::free(block); }

  void* block = nullptr;
};

#if defined(__EMSCRIPTEN__)  // WebAssembly memory never shrinks
using PagesAllocation = HostAllocation;
#else
// calloc would clear memory that an earlier model freed, and free may not return it.
struct PagesAllocation {
  void AllocData(DLTensor* tensor) {
    bytes = std::max<size_t>(ffi::GetDataSize(*tensor), 1);
    memory = pages::allocate(bytes);
    if (memory == nullptr) no_memory(bytes);
    tensor->data = memory;
  }
  void FreeData(DLTensor*) { pages::release(memory, bytes); }

  void* memory = nullptr;
  size_t bytes = 0;
};
#endif

struct MappedAllocation {
  void AllocData(DLTensor* tensor) { tensor->data = const_cast<char*>(data); }
  void FreeData(DLTensor*) {}

  std::shared_ptr<const MappedFile> file;
  const char* data;
};

// Throws if a tensor's size exceeds the address space. In WebAssembly a size has 32 bits, so a
// larger one would wrap around to a small one.
void require_addressable(const std::vector<int64_t>& shape, DLDataType dtype) {
  double bytes = dtype.bits * dtype.lanes / 8.0;
  for (int64_t extent : shape) bytes *= static_cast<double>(extent);
  if (bytes < static_cast<double>(PTRDIFF_MAX)) return;
  throw Error(WHERRY_OUT_OF_MEMORY, concat("no memory for a tensor of ", bytes, " bytes"));
}

// Allocates a tensor with the device's own allocator.
ffi::Tensor allocate_there(const std::vector<int64_t>& shape, DLDataType dtype, DLDevice device) {
  require_addressable(shape, dtype);
  auto empty = ffi::Function::GetGlobalRequired("runtime.TVMTensorAllocWithScope");
  return empty(ffi::Shape(shape), dtype, device, nullptr).cast<ffi::Tensor>();
}

ffi::Tensor copy_to(const ffi::Tensor& tensor, DLDevice device) {
  std::vector<int64_t> shape = shape_of(tensor);
  ffi::Tensor result = is_host(device) ? allocate_host(shape, tensor.dtype())
                                       : allocate_there(shape, tensor.dtype(), device);
  ffi::Function::GetGlobalRequired("runtime.TVMTensorCopyFromTo")(tensor, result);
  return result;
}

}  // namespace

DLDevice parse_device(const std::string& text) {
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  std::string index = colon == std::string::npos ? "0" : text.substr(colon + 1);
  bool digits = !index.empty() && index.size() < 4 &&
                index.find_first_not_of("0123456789") == std::string::npos;
  for (const auto& [name, type] : kKinds) {
    if (digits && kind == name) return DLDevice{type, std::stoi(index)};
  }
  throw Error(WHERRY_INVALID_ARGUMENT,
              concat("device \"", text, "\"; accepted are cpu, cuda, opencl, vulkan, metal, ",
                     "webgpu, rocm, each with or without \":<index>\""));
}

std::string kind_of(DLDevice device) {
  for (const auto& [name, type] : kKinds) {
    if (type == device.device_type) return name;
  }
  throw Error(WHERRY_INTERNAL, concat("no device has type ", static_cast<int>(device.device_type)));
}

ffi::Tensor allocate_host(const std::vector<int64_t>& shape, DLDataType dtype) {
  require_addressable(shape, dtype);
  return ffi::Tensor::FromNDAlloc(HostAllocation{}, ffi::ShapeView(shape.data(), shape.size()),
                                  dtype, DLDevice{kDLCPU, 0});
}

ffi::Tensor tensor_over(std::shared_ptr<const MappedFile> file, const char* data,
                        const std::vector<int64_t>& shape, DLDataType dtype) {
  return ffi::Tensor::FromNDAlloc(MappedAllocation{std::move(file), data},
                                  ffi::ShapeView(shape.data(), shape.size()), dtype,
                                  DLDevice{kDLCPU, 0});
}

ffi::Tensor allocate(const std::vector<int64_t>& shape, DLDataType dtype, DLDevice device) {
  // The browser clears new WebGPU buffers, and a tab's memory is too small for zeros to copy.
  if (device.device_type == kDLWebGPU) return allocate_there(shape, dtype, device);
  require_addressable(shape, dtype);
  auto zeros = ffi::Tensor::FromNDAlloc(
      PagesAllocation{}, ffi::ShapeView(shape.data(), shape.size()), dtype, DLDevice{kDLCPU, 0});
  return to_device(zeros, device);
}

void return_memory(const ffi::Tensor& tensor, size_t offset, size_t bytes) {
  pages::discard(static_cast<char*>(tensor.data_ptr()) + offset, bytes);
}

ffi::Tensor to_device(const ffi::Tensor& tensor, DLDevice device) {
  DLDevice here = tensor.device();
  if (here.device_type == device.device_type && here.device_id == device.device_id) return tensor;
  return copy_to(tensor, device);
}

std::vector<int64_t> shape_of(const ffi::Tensor& tensor) {
  return std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
}

}  // namespace wherry
