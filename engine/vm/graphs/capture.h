// The interface of CUDA graph capture and replay, which tests replace.
#ifndef WHERRY_ENGINE_VM_GRAPHS_CAPTURE_H_
#define WHERRY_ENGINE_VM_GRAPHS_CAPTURE_H_

#include <functional>
#include <memory>

#include "tensors/device.h"

namespace wherry {

// A captured call: its kernels with their addresses and scalar arguments.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // Launches the captured kernels again, after all earlier commands, and returns at once. Throws
  // Error.
  virtual void replay() = 0;
};

class Capturer {
 public:
  virtual ~Capturer() = default;
  // Captures the kernels that `call` launches, without running them; the call must not allocate or
  // copy. Throws Error, and any exception of the call.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& call) = 0;
};

// Opens graph capture for a CUDA device; returns null if the system has none. Throws Error if the
// driver is too old.
std::unique_ptr<Capturer> open_capturer(DLDevice device);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_GRAPHS_CAPTURE_H_
