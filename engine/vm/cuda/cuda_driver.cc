#include "vm/cuda/cuda_driver.h"

#ifdef WHERRY_HAS_CUDA
#include <dlfcn.h>
#endif

#include <type_traits>

#include "support/error.h"

namespace wherry {

namespace {

#ifdef WHERRY_HAS_CUDA
// Opens NVIDIA's driver. Prefers one that the process has loaded already, because tests load an
// emulated one.
void* open_library() {
  void* process = dlopen(nullptr, RTLD_NOW);
  if (process != nullptr && dlsym(process, "cuGraphLaunch") != nullptr) return process;
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}
void* symbol_of(void* library, const char* name) { return dlsym(library, name); }
#else
void* open_library() { return nullptr; }
void* symbol_of(void*, const char*) { return nullptr; }
#endif

CudaDriver driver_from(void* library) {
  CudaDriver driver{};
  std::string missing;
  auto find = [&](auto& function, const char* name) {
    void* symbol = symbol_of(library, name);
    if (symbol == nullptr) missing += std::string(" ") + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(driver.error_name, "cuGetErrorName");
  find(driver.get_context, "cuCtxGetCurrent");
  find(driver.push_context, "cuCtxPushCurrent_v2");
  find(driver.pop_context, "cuCtxPopCurrent_v2");
  find(driver.create_stream, "cuStreamCreate");
  find(driver.destroy_stream, "cuStreamDestroy_v2");
  find(driver.begin_capture, "cuStreamBeginCapture_v2");
  find(driver.end_capture, "cuStreamEndCapture");
  find(driver.instantiate, "cuGraphInstantiateWithFlags");
  find(driver.destroy_graph, "cuGraphDestroy");
  find(driver.launch, "cuGraphLaunch");
  find(driver.destroy_executable, "cuGraphExecDestroy");
  find(driver.allocate_host, "cuMemHostAlloc");
  find(driver.free_host, "cuMemFreeHost");
  find(driver.copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(driver.copy_to_host, "cuMemcpyDtoHAsync_v2");
  find(driver.create_event, "cuEventCreate");
  find(driver.destroy_event, "cuEventDestroy_v2");
  find(driver.record_event, "cuEventRecord");
  find(driver.wait_for_event, "cuEventSynchronize");
  if (!missing.empty()) {
    throw Error(WHERRY_INCOMPATIBLE,
                "NVIDIA's driver is older than CUDA 12: it has no" + missing + "; install a newer");
  }
  return driver;
}

}  // namespace

void CudaDriver::check(int status, const char* function) const {
  if (status == 0) return;
  const char* name = nullptr;
  if (error_name(status, &name) != 0 || name == nullptr) name = "an unknown error";
  throw Error(WHERRY_INTERNAL, concat(function, " failed with ", name, " (", status, ")"));
}

const CudaDriver* cuda_driver() {
  static void* const library = open_library();  // the library is never closed
  if (library == nullptr) return nullptr;
  static const CudaDriver driver = driver_from(library);
  return &driver;
}

}  // namespace wherry
