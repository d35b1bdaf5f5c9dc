// The Vulkan part of a compiled library, as a module of TVM's runtime.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_MODULE_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_MODULE_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/string.h>

namespace wherry::vulkan {

// Loads the kernels that wherry's compiler wrote; the first call of a kernel on a device compiles
// all kernels for that device. Throws a ValueError of tvm-ffi.
tvm::ffi::Module load_module(const tvm::ffi::Bytes& bytes);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_MODULE_H_
