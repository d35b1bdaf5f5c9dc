// TVM's run time for a page, of the wheel's sources: tvm-ffi, the Relax VM, the CPU and memory.
//
// Left out is what the core does not call: RPC, caches of keys and values, files of parameters,
// thread pools. What these sources expect of a process and a page has not is defined here.
#include <tvm/ffi/error.h>

#include <string>

#include "src/ffi/backtrace.cc"
#include "src/ffi/container.cc"
#include "src/ffi/custom_allocator.cc"
#include "src/ffi/dtype.cc"
#include "src/ffi/error.cc"
#include "src/ffi/extra/env_c_api.cc"
#include "src/ffi/extra/env_context.cc"
#include "src/ffi/extra/json_parser.cc"
#include "src/ffi/extra/json_writer.cc"
#include "src/ffi/extra/library_module.cc"
#include "src/ffi/extra/library_module_system_lib.cc"
#include "src/ffi/extra/module.cc"
#include "src/ffi/function.cc"
#include "src/ffi/init_once.cc"
#include "src/ffi/object.cc"
#include "src/ffi/tensor.cc"
// The run time
#include "src/runtime/cpu_device_api.cc"
#include "src/runtime/device_api.cc"
#include "src/runtime/file_utils.cc"
#include "src/runtime/memory/memory_manager.cc"
#include "src/runtime/tensor.cc"
#include "src/runtime/vm/builtin.cc"
#include "src/runtime/vm/bytecode.cc"
#include "src/runtime/vm/executable.cc"
#include "src/runtime/vm/vm.cc"
#include "src/runtime/workspace_pool.cc"

namespace tvm::runtime::detail {

void LogFatalImpl(const std::string& file, int line, const std::string& message) {
  TVM_FFI_THROW(InternalError) << message << " (" << file << ":" << line << ")";
  throw;
}

// A library never prints.
void LogMessageImpl(const std::string&, int, int, const std::string&) {}

}  // namespace tvm::runtime::detail

extern "C" {

// A page's thread computes alone.
int TVMBackendParallelLaunch(FTVMParallelLambda task, void* closure, int) {
  TVMParallelGroupEnv alone{nullptr, 1};
  return task(0, &alone, closure);
}

int TVMBackendParallelBarrier(int, TVMParallelGroupEnv*) { return 0; }

}  // extern "C"
