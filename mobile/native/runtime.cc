// TVM's runtime for apps, compiled from the wheel's sources: tvm-ffi, the Relax VM, the CPU device,
// memory.
//
// Omitted is what the core does not call: RPC, TVM's KV caches, parameter files and thread pools
// (engine/vm/kernel_threads.h replaces these). It is one file, so that a program that links any of
// it has all of it, because functions register themselves.
#include <tvm/ffi/error.h>
#include <tvm/runtime/c_backend_api.h>

#include <string>

#include "vm/kernel_threads.h"

// Disables registrations that only Python looks up by name, so that the linker drops their code.
#pragma push_macro("TVM_FFI_STATIC_INIT_BLOCK")
#undef TVM_FFI_STATIC_INIT_BLOCK
#define TVM_FFI_STATIC_INIT_BLOCK() \
  [[maybe_unused]] static void TVM_FFI_STR_CONCAT(not_registered, __COUNTER__)()
#include "src/ffi/container.cc"
#include "src/ffi/extra/json_parser.cc"
#include "src/ffi/extra/json_writer.cc"
#include "src/ffi/extra/module.cc"
#include "src/ffi/function.cc"
#include "src/ffi/tensor.cc"
#include "src/runtime/file_utils.cc"
#pragma pop_macro("TVM_FFI_STATIC_INIT_BLOCK")

#include "src/ffi/backtrace.cc"
#include "src/ffi/custom_allocator.cc"
#include "src/ffi/dtype.cc"
#include "src/ffi/error.cc"
#include "src/ffi/extra/env_c_api.cc"
#include "src/ffi/extra/env_context.cc"
#include "src/ffi/extra/library_module.cc"
#include "src/ffi/extra/library_module_dynamic_lib.cc"
#include "src/ffi/extra/library_module_system_lib.cc"
#include "src/ffi/init_once.cc"
#include "src/ffi/object.cc"
// Sources of TVM's runtime
#include "src/runtime/cpu_device_api.cc"
#include "src/runtime/device_api.cc"  // models for GPUs call __tvm_set_device
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

// Drops log messages, because a library never prints.
void LogMessageImpl(const std::string&, int, int, const std::string&) {}

}  // namespace tvm::runtime::detail

// Runs the tasks of a kernel; linked-in models call this function by name.
int TVMBackendParallelLaunch(FTVMParallelLambda task, void* closure, int tasks) {
  static_assert(sizeof(TVMParallelGroupEnv) == sizeof(wherry::KernelGroup));
  return wherry::launch_kernel(reinterpret_cast<wherry::KernelTask>(task), closure, tasks);
}

// What is linked in besides, from models.cc, which `wherry package` writes, or else no_models.cc.
extern "C" {
// Addresses in every object file of the models. The linker takes objects of a static library only
// if a symbol refers to them, and no other symbol refers to these.
extern const void* const wherry_linked_models[];
__attribute__((used)) const void* const* wherry_models_in_use = wherry_linked_models;

// The libraries of each model as JSON; app/load/codes.h reads it.
extern const char wherry_linked_codes[];

// Plugins for devices: see engine/backends/opencl/plugin.h. The last one has no kind.
struct WherryDriver {
  const char* kind;
  const char* (*open)(const char* tvm_version, const char* cache_folder);
  const char* (*devices)();
};
extern const WherryDriver wherry_linked_drivers[];
}

// wherry.linked.codes() -> JSON; wherry.linked.<kind>.open(cache folder) -> problem, "" if there is
// none; wherry.linked.<kind>.devices() -> JSON.
TVM_FFI_STATIC_INIT_BLOCK() {
  using tvm::ffi::String;
  tvm::ffi::reflection::GlobalDef define;
  define.def("wherry.linked.codes", [] { return String(wherry_linked_codes); });
  for (const WherryDriver* driver = wherry_linked_drivers; driver->kind != nullptr; ++driver) {
    const std::string prefix = std::string("wherry.linked.") + driver->kind;
    define.def((prefix + ".open").c_str(), [driver](const String& cache_folder) {
      const char* problem = driver->open("", cache_folder.c_str());
      return String(problem == nullptr ? "" : problem);
    });
    define.def((prefix + ".devices").c_str(), [driver] { return String(driver->devices()); });
  }
}
