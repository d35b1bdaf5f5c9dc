// TVM's WebGPU device, whose functions WebLLM's JavaScript implements.
#include <tvm/ffi/error.h>

// TVM's source prints errors before it throws them; this macro only throws, because a library never
// prints.
#undef TVM_FFI_THROW
#define TVM_FFI_THROW(ErrorKind)                                                   \
  ::tvm::ffi::details::ErrorBuilder(                                               \
      #ErrorKind, TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0), false) \
      .stream()

#include "web/emcc/webgpu_runtime.cc"
