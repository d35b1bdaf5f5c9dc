// The OpenCL part of a compiled library, as a module of TVM's runtime.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_MODULE_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_MODULE_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/string.h>

namespace wherry::opencl {

// Loads the kernels that TVM's compiler wrote; builds each kernel at its first call. Throws a
// ValueError of tvm-ffi.
tvm::ffi::Module load_module(const tvm::ffi::Bytes& bytes);

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_MODULE_H_
