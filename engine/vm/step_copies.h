// Asynchronous copies of a step's arrays and results between host and device.
#ifndef WHERRY_ENGINE_VM_STEP_COPIES_H_
#define WHERRY_ENGINE_VM_STEP_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tensors/device.h"

namespace wherry {

// Upper bounds in bytes for a step's copies; larger arrays are not copied asynchronously.
struct CopySizes {
  size_t written = 0;  // bytes copied to the device, each array rounded up to kAlignment
  size_t read = 0;     // bytes copied to the host
};

// Copies asynchronously for TVM's own devices, whose synchronous copies wait for the whole
// stream. A step's host arrays and its results are in pinned memory, which the device
// accesses when the stream reaches the copy; each of two steps in flight has its own
// buffer.
//
// An error turns these copies off and does not fail the step: false and 0 mean that
// nothing was copied, and the caller copies synchronously.
class StepCopies {
 public:
  virtual ~StepCopies() = default;

  // Starts the next step's copies. Waits for the step before the previous one, and reuses its
  // buffer.
  virtual void begin() = 0;
  // Enqueues a copy from the host tensor `from` to the device tensor `to`. The caller may change
  // `from` at once.
  virtual bool write(const ffi::Tensor& from, const ffi::Tensor& to) = 0;
  // Enqueues the copy of `result` to the host, or nothing if it is undefined; call it after the
  // step's kernels. Returns the step's number for take(), or 0.
  virtual uint64_t finish(const ffi::Tensor& result) = 0;
  // Waits for a step's result and copies it to `host`; does not wait for later steps.
  virtual bool take(uint64_t step, const ffi::Tensor& host) = 0;

  // Why asynchronous copies are off; empty while they are on.
  virtual const std::string& given_up() const = 0;
};

// Opens copies for a CUDA device whose context is current; returns null if this system has no CUDA.
// Throws Error if the driver is too old or out of memory.
std::unique_ptr<StepCopies> open_step_copies(DLDevice device, const CopySizes& sizes);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_STEP_COPIES_H_
