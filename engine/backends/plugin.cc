#include "backends/plugin.h"

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <exception>
#include <map>
#include <mutex>

#include "backends/files.h"

namespace wherry::backends {

namespace {

std::string check_versions(const std::string& tvm_version) {
  if (tvm_version != WHERRY_TVM_VERSION) {
    return "this plugin was built for apache-tvm " WHERRY_TVM_VERSION ", the one installed is " +
           tvm_version + ". Type: pip install apache-tvm==" WHERRY_TVM_VERSION;
  }
  TVMFFIVersion version;
  TVMFFIGetVersion(&version);
  if (version.major != TVM_FFI_VERSION_MAJOR || version.minor != TVM_FFI_VERSION_MINOR) {
    return "this plugin was built for another version of apache-tvm-ffi than the one installed";
  }
  return "";
}

std::string register_kind(const std::string& kind, Devices& devices, LoadModule load) {
  std::string name = "device_api." + kind;
  if (tvm::ffi::Function::GetGlobal(name).has_value()) {
    return "TVM's run time has " + kind + " devices of its own in this process";
  }
  tvm::ffi::reflection::GlobalDef()
      .def_packed(name.c_str(),
                  [&devices](tvm::ffi::PackedArgs, tvm::ffi::Any* result) {
                    tvm::runtime::DeviceAPI* api = &devices;
                    *result = static_cast<void*>(api);
                  })
      .def(("ffi.Module.load_from_bytes." + kind).c_str(), load)
      .def(("wherry." + kind + ".start").c_str(),
           [&devices](const tvm::ffi::Tensor& tensor) { devices.start(tensor); })
      .def(("wherry." + kind + ".take").c_str(),
           [&devices](const tvm::ffi::Tensor& tensor, const tvm::ffi::Tensor& host) {
             devices.take(tensor, host);
           });
  return "";
}

}  // namespace

const char* open_plugin(const std::string& kind, Devices& devices, LoadModule load,
                        const char* tvm_version, const char* cache_folder) {
  // By kind, because an app's library contains several plugins.
  struct State {
    bool opened = false;
    std::string problem;
  };
  static std::mutex mutex;
  static std::map<std::string, State> states;
  std::lock_guard<std::mutex> lock(mutex);
  auto& [opened, problem] = states[kind];
  if (opened) return nullptr;
  try {
    problem = check_versions(tvm_version == nullptr ? "" : tvm_version);
    if (problem.empty()) problem = register_kind(kind, devices, load);
    set_cache_folder(cache_folder == nullptr ? "" : cache_folder);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  opened = problem.empty();
  return opened ? nullptr : problem.c_str();
}

const char* list_devices(Devices& devices) {
  static std::mutex mutex;
  static std::map<const Devices*, std::string> texts;
  std::lock_guard<std::mutex> lock(mutex);
  std::string& text = texts[&devices];
  try {
    text = devices.to_json();
  } catch (const std::exception& error) {
    text = "{\"devices\": [], \"problems\": \"a driver failed\"}";
  }
  return text.c_str();
}

}  // namespace wherry::backends
