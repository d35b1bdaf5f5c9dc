#ifndef WHERRY_ENGINE_BACKENDS_WEBGPU_MODULE_H_
#define WHERRY_ENGINE_BACKENDS_WEBGPU_MODULE_H_

#include <tvm/ffi/extra/module.h>

namespace wherry::webgpu {

// Loads the WGSL part of a library, as TVM's compiler writes it: u64 count, count * (string name,
// string name, types, tags and extras of the call); u64 count, count * (string name, string WGSL).
tvm::ffi::Module load_module(const tvm::ffi::Bytes& bytes);

}  // namespace wherry::webgpu

#endif  // WHERRY_ENGINE_BACKENDS_WEBGPU_MODULE_H_
