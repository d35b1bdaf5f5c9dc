// Builds TVM's runtime for a page from the sources in TVM's wheels: tvm-ffi, the Relax VM, the CPU
// and memory.
//
// It leaves out what the core does not call: RPC, KV caches, parameter files, thread pools
// (threads.cc replaces them). It defines what these sources expect of a process and a page lacks.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/string.h>
#include <tvm/runtime/c_backend_api.h>

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
#include "threads.h"
#include "vm/threads.h"
// Sources of TVM's runtime.
#include "src/runtime/cpu_device_api.cc"
// Renames two functions that tasks of kernels call, so that they can be guarded below.
#define TVMBackendAllocWorkspace AllocWorkspaceAlone
#define TVMBackendFreeWorkspace FreeWorkspaceAlone
#include "src/runtime/device_api.cc"
#undef TVMBackendAllocWorkspace
#undef TVMBackendFreeWorkspace
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

// Drops messages, because a library never prints.
void LogMessageImpl(const std::string&, int, int, const std::string&) {}

}  // namespace tvm::runtime::detail

extern "C" {

void* TVMBackendAllocWorkspace(int device, int id, uint64_t bytes, int code, int bits) {
  const wherry::page::MemoryLock lock;
  return AllocWorkspaceAlone(device, id, bytes, code, bits);
}

int TVMBackendFreeWorkspace(int device, int id, void* data) {
  const wherry::page::MemoryLock lock;
  return FreeWorkspaceAlone(device, id, data);
}

}  // extern "C"

namespace wherry {

// threads.cc is linked in place of TVM's thread pool, so no library's launches have to be
// redirected.
void take_kernel_launches() {}
void configure_kernel_threads(int threads) { page::use_threads(threads); }

}  // namespace wherry
