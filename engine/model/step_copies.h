// Copies between the host and a device that nobody waits for before they are needed.
#ifndef WHERRY_ENGINE_MODEL_STEP_COPIES_H_
#define WHERRY_ENGINE_MODEL_STEP_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "model/device.h"

namespace wherry {

// Bytes of a step at most; what has more is not copied here.
struct CopySizes {
  size_t written = 0;  // to the device, each array rounded up to kAlignment
  size_t brought = 0;  // to the host
};

// For devices of TVM's own, whose copies may wait for all that was asked for. The host's arrays of
// a step and its results have a place each in memory that the device reads and writes by itself,
// when its turn comes; of two steps under way each has its own.
//
// What goes wrong ends this, not the step: false and 0 mean that nothing was done, and the caller
// copies as it would without.
class StepCopies {
 public:
  virtual ~StepCopies() = default;

  // The next step begins. Waits for the last but one, whose place it takes.
  virtual void begin() = 0;
  // `to`, of the device, gets the bytes of `from`, of the host, behind all that was asked for
  // before. They are the caller's again at once.
  virtual bool write(const ffi::Tensor& from, const ffi::Tensor& to) = 0;
  // All of the step was asked for. Begins to bring `result`, as it is then, to the host; undefined:
  // nothing is wanted. Gives what take() knows the step by, or 0.
  virtual uint64_t finish(const ffi::Tensor& result) = 0;
  // Waits for a step's result, and for nothing that was asked for later.
  virtual bool take(uint64_t step, const ffi::Tensor& host) = 0;

  // Why nothing is done any more; empty: nothing has gone wrong.
  virtual const std::string& given_up() const = 0;
};

// Copies of a CUDA device whose context is current; null: this system has none. Throws Error
// where the driver is too old or has no memory for it.
std::unique_ptr<StepCopies> open_step_copies(DLDevice device, const CopySizes& sizes);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_STEP_COPIES_H_
