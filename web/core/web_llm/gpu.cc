// TVM's device of WebGPU, whose functions are WebLLM's JavaScript.
#include <tvm/ffi/error.h>

// Its source asks for errors to be written before they are thrown; a library never prints.
#undef TVM_FFI_THROW
#define TVM_FFI_THROW(ErrorKind)                                                   \
  ::tvm::ffi::details::ErrorBuilder(                                               \
      #ErrorKind, TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0), false) \
      .stream()

#include "web/emcc/webgpu_runtime.cc"
