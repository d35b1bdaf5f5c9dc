#include "app/chat/libraries.h"

#include <dlfcn.h>
#include <tvm/ffi/function.h>

#include "support/error.h"

namespace wherry::app {

namespace {

// Version of the tvm-ffi wheel of this build; "" where TVM's runtime is compiled into this library,
// so that plugins cannot use it.
constexpr char kTvmVersion[] = WHERRY_TVM_VERSION;

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

void open_driver(const std::string& kind, const std::string& path) {
  if (kind == "cpu" || tvm::ffi::Function::GetGlobal("device_api." + kind).has_value()) return;
  if (kTvmVersion[0] == '\0') {
    throw Error(WHERRY_INVALID_ARGUMENT, "option \"device\" is \"" + kind +
                                             "\"; this library drives the CPU alone: \"cpu\"");
  }
  const std::string usual = kind == "cuda" ? "libtvm_runtime_cuda.so" : "libwherry_" + kind + ".so";
  void* library =
      open_global(path.empty() ? usual : path, kind + "'s driver (option \"driver\" has its path)");
  using Open = const char* (*)(const char* tvm_version, const char* cache_folder);
  const auto open = reinterpret_cast<Open>(dlsym(library, ("wherry_" + kind + "_open").c_str()));
  const char* problem = open == nullptr ? nullptr : open(kTvmVersion, nullptr);
  if (problem != nullptr) throw Error(WHERRY_INCOMPATIBLE, kind + "'s driver: " + problem);
}

}  // namespace wherry::app
