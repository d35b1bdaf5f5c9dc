// A small array on the device that the host fills at each step.
#ifndef WHERRY_ENGINE_MODEL_STAGING_H_
#define WHERRY_ENGINE_MODEL_STAGING_H_

#include <vector>

#include "model/device.h"
#include "model/step_copies.h"

namespace wherry {

class Staging {
 public:
  Staging(int64_t capacity, DLDataType dtype, DLDevice device);

  // From here on values go there by these, which outlive it.
  void copy_by(StepCopies& copies) { copies_ = &copies; }
  size_t bytes() const { return ffi::GetDataSize(host_); }

  // The values on the device, in elements of T, which is the dtype. Valid until the next call.
  // Throws WHERRY_INTERNAL for more than there is room for.
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

  ffi::Tensor host_, there_;
  StepCopies* copies_ = nullptr;
};

// Between any two places, of the same shape and dtype.
void copy_tensor(const ffi::Tensor& from, const ffi::Tensor& to);

// Element `i` of the first axis, as a tensor [1, ...] over the same memory.
ffi::Tensor part_of(const ffi::Tensor& tensor, int64_t i);

// Element `i` of a compact tensor, counted through all axes, as a tensor [1] over the same memory.
ffi::Tensor element_of(const ffi::Tensor& tensor, int64_t i);

// Where the elements of a compact tensor of the host begin.
const char* bytes_of(const ffi::Tensor& host);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_STAGING_H_
