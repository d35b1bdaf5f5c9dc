// A compiled library's `forward` with the state of one engine.
#ifndef WHERRY_ENGINE_MODEL_VM_SESSION_H_
#define WHERRY_ENGINE_MODEL_VM_SESSION_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <memory>

#include "model/device.h"
#include "model/model.h"

namespace wherry {

// What the sessions of one model have in common.
struct VmShared {
  Metadata metadata;
  ffi::Function executable;  // of open_executable()
  ffi::Array<ffi::Tensor> params;
  DLDevice device{kDLCPU, 0};
  int threads = 1;        // of the kernels
  bool graphs = true;     // where the device has them
  uint64_t identity = 0;  // see Model
};

// Allocates the state and the staging tensors; each session has a VM of its own.
std::unique_ptr<Session> open_vm_session(std::shared_ptr<const VmShared> shared,
                                         const SessionLimits& limits);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_VM_SESSION_H_
