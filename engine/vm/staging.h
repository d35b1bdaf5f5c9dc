// A small device array that the host fills in each step.
#ifndef WHERRY_ENGINE_VM_STAGING_H_
#define WHERRY_ENGINE_VM_STAGING_H_

#include <vector>

#include "tensors/device.h"
#include "vm/step_copies.h"

namespace wherry {

class Staging {
 public:
  Staging(int64_t capacity, DLDataType dtype, DLDevice device);

  // Copies with `copies` from now on; it must outlive this object.
  void copy_by(StepCopies& copies) { copies_ = &copies; }
  size_t bytes() const { return ffi::GetDataSize(host_); }

  // Copies values of type T, which must match the dtype, to the device. The result is valid until
  // the next call. Throws WHERRY_INTERNAL if there are more than `capacity` values.
  template <typename T>
  ffi::Tensor view(const std::vector<T>& values) {
    auto n = static_cast<int64_t>(values.size());
    require_room(n);
    std::copy(values.begin(), values.end(), static_cast<T*>(host_.data_ptr()));
    return moved(n);
  }

 private:
  void require_room(int64_t n) const;
  ffi::Tensor moved(int64_t n);

  ffi::Tensor host_, device_;
  StepCopies* copies_ = nullptr;
};

// Copies a tensor to another of equal shape and dtype, on any two devices.
void copy_tensor(const ffi::Tensor& from, const ffi::Tensor& to);

// Returns element `i` of the first axis, as a tensor [1, ...] over the same memory.
ffi::Tensor part_of(const ffi::Tensor& tensor, int64_t i);

// Returns rows `first` to `first` + `rows` of a compact tensor [n, d], over the same memory.
ffi::Tensor rows_of(const ffi::Tensor& tensor, int64_t first, int64_t rows);

// Returns element `i` of a compact tensor, counted through all axes, as a tensor [1] over the same
// memory.
ffi::Tensor element_of(const ffi::Tensor& tensor, int64_t i);

// Returns the address of the first byte of a compact tensor in host memory.
const char* bytes_of(const ffi::Tensor& host);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_STAGING_H_
