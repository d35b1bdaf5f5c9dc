// The Relax VM inside a compiled library, reached through tvm-ffi alone.
#ifndef WHERRY_ENGINE_MODEL_VIRTUAL_MACHINE_H_
#define WHERRY_ENGINE_MODEL_VIRTUAL_MACHINE_H_

#include <tvm/ffi/extra/module.h>

#include <cstdint>
#include <string>

#include "model/device.h"

namespace wherry {

// The executable in a library (a file, or "system:<prefix>"). Each call of the function makes a
// new VM; it keeps the library's code in memory. Throws WHERRY_NOT_FOUND or WHERRY_INCOMPATIBLE.
ffi::Function open_executable(const std::string& lib);

// Hash of the library's bytes, or of the prefix of a library that is linked in.
uint64_t hash_of_library(const std::string& lib);

// Gives back what TVM's pooled allocators keep: freed buffers, one of each size they ever saw.
void release_pooled_memory();

// One VM: it has a stack of frames, so two threads must not share it.
class VirtualMachine {
 public:
  VirtualMachine(const ffi::Function& executable, DLDevice device);

  // Throws WHERRY_INCOMPATIBLE if the library has no such function.
  ffi::Function function(const std::string& name) const;
  // Null if it has none.
  ffi::Optional<ffi::Function> find(const std::string& name) const;

 private:
  ffi::Module module_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_VIRTUAL_MACHINE_H_
