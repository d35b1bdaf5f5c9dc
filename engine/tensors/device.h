// Allocates tensors on a device and copies them between devices.
#ifndef WHERRY_ENGINE_TENSORS_DEVICE_H_
#define WHERRY_ENGINE_TENSORS_DEVICE_H_

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensors/mapped_file.h"

namespace wherry {

namespace ffi = tvm::ffi;

// Bytes to which TVM's runtime aligns its tensors (kAllocAlignment); kernels rely on it.
constexpr size_t kAlignment = 64;

// Parses "cpu" or "cuda:1". Throws WHERRY_INVALID_ARGUMENT for a kind that is not known.
DLDevice parse_device(const std::string& text);

// Returns the kind alone, such as "cpu", of a device that parse_device returned.
std::string kind_of(DLDevice device);

inline bool is_host(DLDevice device) { return device.device_type == kDLCPU; }

// Whether a call can block until the device has results; in a browser no call can.
inline bool can_wait(DLDevice device) { return device.device_type != kDLWebGPU; }

// Allocates zeroed host memory. Throws WHERRY_OUT_OF_MEMORY.
ffi::Tensor allocate_host(const std::vector<int64_t>& shape, DLDataType dtype);

// Returns a read-only tensor over mapped bytes; it keeps the mapping alive.
ffi::Tensor tensor_over(std::shared_ptr<const MappedFile> file, const char* data,
                        const std::vector<int64_t>& shape, DLDataType dtype);

// Allocates zeroed memory on any device, for tensors that live as long as a model. On the host, the
// system commits each memory page at its first write, and takes all of them back with the tensor.
ffi::Tensor allocate(const std::vector<int64_t>& shape, DLDataType dtype, DLDevice device);

// Returns memory of a tensor of `allocate` on the host to the system, as far as whole memory pages
// are in [offset, offset + bytes). Its content is undefined afterwards, and it can be written
// again.
void return_memory(const ffi::Tensor& tensor, size_t offset, size_t bytes);

// Returns the tensor itself if it is already on that device, else a copy.
ffi::Tensor to_device(const ffi::Tensor& tensor, DLDevice device);
inline ffi::Tensor to_host(const ffi::Tensor& tensor) {
  return to_device(tensor, DLDevice{kDLCPU, 0});
}

std::vector<int64_t> shape_of(const ffi::Tensor& tensor);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TENSORS_DEVICE_H_
