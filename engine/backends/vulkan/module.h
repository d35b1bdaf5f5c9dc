// The Vulkan part of a compiled library, as a module of TVM's run time.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_MODULE_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_MODULE_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/string.h>

namespace wherry::vulkan {

// From the bytes that wherry's compiler wrote; a device compiles the kernels when the first one is
// called. Throws a ValueError of tvm-ffi.
tvm::ffi::Module load_module(const tvm::ffi::Bytes& bytes);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_MODULE_H_
