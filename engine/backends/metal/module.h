// The Metal part of a compiled library, as a module of TVM's runtime.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_MODULE_H_
#define WHERRY_ENGINE_BACKENDS_METAL_MODULE_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/string.h>

namespace wherry::metal {

// Loads the kernels that TVM's compiler wrote, and compiles them at the first launch of one. Throws
// a ValueError of tvm-ffi.
tvm::ffi::Module load_module(const tvm::ffi::Bytes& bytes);

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_MODULE_H_
