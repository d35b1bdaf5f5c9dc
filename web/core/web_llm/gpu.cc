// TVM's WebGPU device, whose functions are WebLLM's JavaScript.
#include <tvm/ffi/error.h>

// Throws without writing the error first: the device's source asks for that, but a library never
// prints.
#undef TVM_FFI_THROW
#define TVM_FFI_THROW(ErrorKind)                                                   \
  ::tvm::ffi::details::ErrorBuilder(                                               \
      #ErrorKind, TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0), false) \
      .stream()

#include "web/emcc/webgpu_runtime.cc"
