#include "backends/opencl/plugin.h"

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <mutex>
#include <string>

#include "backends/opencl/device.h"
#include "backends/opencl/module.h"
#include "backends/opencl/program.h"

namespace wherry::opencl {

namespace {

std::string open(const std::string& tvm_version, const std::string& cache_folder) {
  if (tvm_version != WHERRY_TVM_VERSION) {
    return "this plugin was built for apache-tvm " WHERRY_TVM_VERSION ", the one installed is " +
           tvm_version + ". Type: pip install apache-tvm==" WHERRY_TVM_VERSION;
  }
  TVMFFIVersion ffi_version;
  TVMFFIGetVersion(&ffi_version);
  if (ffi_version.major != TVM_FFI_VERSION_MAJOR || ffi_version.minor != TVM_FFI_VERSION_MINOR) {
    return "this plugin was built for another version of apache-tvm-ffi than the one installed";
  }
  if (tvm::ffi::Function::GetGlobal("device_api.opencl").has_value()) {
    return "TVM's run time has OpenCL devices of its own in this process";
  }
  namespace reflection = tvm::ffi::reflection;
  reflection::GlobalDef()
      .def_packed("device_api.opencl",
                  [](tvm::ffi::PackedArgs, tvm::ffi::Any* result) {
                    tvm::runtime::DeviceAPI* devices = &Devices::get();
                    *result = static_cast<void*>(devices);
                  })
      .def("ffi.Module.load_from_bytes.opencl", load_module);
  set_cache_folder(cache_folder);
  return "";
}

}  // namespace

}  // namespace wherry::opencl

const char* wherry_opencl_open(const char* tvm_version, const char* cache_folder) {
  static std::mutex mutex;
  static bool opened = false;
  static std::string problem;
  std::lock_guard<std::mutex> lock(mutex);
  if (opened) return nullptr;
  try {
    problem = wherry::opencl::open(tvm_version == nullptr ? "" : tvm_version,
                                   cache_folder == nullptr ? "" : cache_folder);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  opened = problem.empty();
  return opened ? nullptr : problem.c_str();
}
