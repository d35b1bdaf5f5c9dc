// A compiled library: a Relax VM executable with the functions of ARCHITECTURE.md.
#ifndef WHERRY_ENGINE_MODEL_VM_MODEL_H_
#define WHERRY_ENGINE_MODEL_VM_MODEL_H_

#include <memory>
#include <string>

#include "abi/config.h"
#include "model/model.h"

namespace wherry {

// lib: a file, or "system:<prefix>" for one linked into the program. Needs TVM's run time in the
// process (libtvm_runtime, which registers the VM). Throws Error: WHERRY_NOT_FOUND for a missing
// file, WHERRY_INCOMPATIBLE for a library or weights that do not fit.
std::shared_ptr<const Model> load_vm_model(const std::string& lib, const std::string& weights,
                                           const std::string& device, const ModelOptions& options);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_VM_MODEL_H_
