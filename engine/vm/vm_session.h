// Runs a compiled library's entries on the state of one engine.
#ifndef WHERRY_ENGINE_VM_VM_SESSION_H_
#define WHERRY_ENGINE_VM_VM_SESSION_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <memory>

#include "model/model.h"
#include "tensors/device.h"

namespace wherry {

class Tower;

// What all sessions of one model share: executable, parameters and options.
struct VmShared {
  Metadata metadata;
  ffi::Function executable;  // the result of open_executable()
  ffi::Array<ffi::Tensor> params;
  DLDevice device{kDLCPU, 0};
  int threads = 1;               // number of threads that run kernels
  bool graphs = true;            // whether to use CUDA graphs
  uint64_t identity = 0;         // hash of library and weights; see Model
  std::shared_ptr<Tower> tower;  // null if the model was loaded without one
};

// Opens a session with its own VM; allocates the state and the staging tensors.
std::unique_ptr<Session> open_vm_session(std::shared_ptr<const VmShared> shared,
                                         const SessionLimits& limits);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_VM_SESSION_H_
