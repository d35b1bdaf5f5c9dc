// The one place that knows on which device tensors live.
#ifndef WHERRY_ENGINE_MODEL_DEVICE_H_
#define WHERRY_ENGINE_MODEL_DEVICE_H_

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weights/mapped_file.h"

namespace wherry {

namespace ffi = tvm::ffi;

// What TVM's run time gives its own tensors (kAllocAlignment), so what its kernels may count on.
constexpr size_t kAlignment = 64;

// "cpu", "cuda:1" -> DLDevice. Throws WHERRY_INVALID_ARGUMENT for a kind that is not known.
DLDevice parse_device(const std::string& text);

// "cpu", of what parse_device gives.
std::string kind_of(DLDevice device);

inline bool is_host(DLDevice device) { return device.device_type == kDLCPU; }

// Whether a call can wait for the device's results; a browser's page cannot.
inline bool can_wait(DLDevice device) { return device.device_type != kDLWebGPU; }

// Zeroed host memory. Throws WHERRY_OUT_OF_MEMORY.
ffi::Tensor allocate_host(const std::vector<int64_t>& shape, DLDataType dtype);

// A read-only tensor over mapped bytes; keeps the mapping alive.
ffi::Tensor tensor_over(std::shared_ptr<const MappedFile> file, const char* data,
                        const std::vector<int64_t>& shape, DLDataType dtype);

// Zeroed memory on any device, for what lives as long as a model: the host's comes page by page, at
// the first write, and goes back with the tensor.
ffi::Tensor allocate(const std::vector<int64_t>& shape, DLDataType dtype, DLDevice device);

// The tensor itself where it is already there, else a copy.
ffi::Tensor to_device(const ffi::Tensor& tensor, DLDevice device);
inline ffi::Tensor to_host(const ffi::Tensor& tensor) {
  return to_device(tensor, DLDevice{kDLCPU, 0});
}

std::vector<int64_t> shape_of(const ffi::Tensor& tensor);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_DEVICE_H_
