#include "app/load/libraries.h"

#include <dlfcn.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include "support/error.h"

namespace wherry::app {

namespace {

// Version of the tvm-ffi wheel of this build; "" where TVM's runtime is compiled into this library,
// so that plugins cannot use it.
constexpr char kTvmVersion[] = WHERRY_TVM_VERSION;

// Calls a function of mobile/native/runtime.cc; "" if this program has none of this name.
template <typename... Args>
std::string linked(const std::string& name, const Args&... args) {
  const auto function = tvm::ffi::Function::GetGlobal("wherry.linked." + name);
  if (!function.has_value()) return "";
  return std::string((*function)(args...).template cast<tvm::ffi::String>());
}

void* open_global(const std::string& path, const std::string& what) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library != nullptr) return library;
  throw Error(WHERRY_NOT_FOUND, what + " cannot be loaded: " + dlerror());
}

}  // namespace

void open_runtime(const std::string& path) {
  if (path.empty() && tvm::ffi::Function::GetGlobal("vm.builtin.copy").has_value()) return;
  open_global(path.empty() ? "libtvm_runtime.so" : path,
              "TVM's run time (option \"runtime\" has its path)");
}

void open_driver(const std::string& kind, const std::string& path,
                 const std::string& cache_folder) {
  if (kind == "cpu" || tvm::ffi::Function::GetGlobal("device_api." + kind).has_value()) return;
  if (path.empty() &&
      tvm::ffi::Function::GetGlobal("wherry.linked." + kind + ".open").has_value()) {
    const std::string problem = linked(kind + ".open", tvm::ffi::String(cache_folder));
    if (!problem.empty()) throw Error(WHERRY_INCOMPATIBLE, kind + "'s driver: " + problem);
    return;
  }
  if (kTvmVersion[0] == '\0') {
    throw Error(WHERRY_INVALID_ARGUMENT, "option \"device\" is \"" + kind +
                                             "\"; this library has no driver for it. Take "
                                             "\"cpu\", or package the model anew: wherry package "
                                             "MODEL --target PLATFORM:" +
                                             kind);
  }
  const std::string usual = kind == "cuda" ? "libtvm_runtime_cuda.so" : "libwherry_" + kind + ".so";
  void* library =
      open_global(path.empty() ? usual : path, kind + "'s driver (option \"driver\" has its path)");
  using Open = const char* (*)(const char* tvm_version, const char* cache_folder);
  const auto open = reinterpret_cast<Open>(dlsym(library, ("wherry_" + kind + "_open").c_str()));
  const char* problem = open == nullptr ? nullptr : open(kTvmVersion, cache_folder.c_str());
  if (problem != nullptr) throw Error(WHERRY_INCOMPATIBLE, kind + "'s driver: " + problem);
}

std::string linked_table() { return linked("codes"); }

std::string linked_devices(const std::string& kind) { return linked(kind + ".devices"); }

}  // namespace wherry::app
