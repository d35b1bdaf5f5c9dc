// Wraps the Relax VM of a compiled library, used through tvm-ffi alone.
#ifndef WHERRY_ENGINE_VM_VIRTUAL_MACHINE_H_
#define WHERRY_ENGINE_VM_VIRTUAL_MACHINE_H_

#include <tvm/ffi/extra/module.h>

#include <cstdint>
#include <string>

#include "tensors/device.h"

namespace wherry {

// Opens the executable in a library (a file, or "system:<prefix>" for one that is linked in). Each
// call of the result creates a VM, and the result keeps the library loaded. Throws WHERRY_NOT_FOUND
// or WHERRY_INCOMPATIBLE.
ffi::Function open_executable(const std::string& lib);

// Returns a hash of the library's bytes, or of the prefix of a linked-in library.
uint64_t hash_of_library(const std::string& lib);

// Frees the buffers in TVM's pooled allocators, which keep freed buffers of each size.
void release_pooled_memory();

// One Relax VM. It has a stack of frames, so two threads must not share it.
class VirtualMachine {
 public:
  VirtualMachine(const ffi::Function& executable, DLDevice device);

  // Returns the function of this name. Throws WHERRY_INCOMPATIBLE if the library has none.
  ffi::Function function(const std::string& name) const;
  // Returns the function of this name; null if the library has none.
  ffi::Optional<ffi::Function> find(const std::string& name) const;

 private:
  ffi::Module module_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_VIRTUAL_MACHINE_H_
