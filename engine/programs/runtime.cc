#include "programs/runtime.h"

#include <dlfcn.h>
#include <tvm/ffi/function.h>

#include <stdexcept>

namespace wherry {

namespace {

void* open_global(const std::string& path, const std::string& what) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(what + " cannot be loaded: " + dlerror());
  return library;
}

}  // namespace

void open_runtime(const std::string& path) {
  if (path.empty() && tvm::ffi::Function::GetGlobal("vm.builtin.copy").has_value()) return;
  open_global(path.empty() ? "libtvm_runtime.so" : path, "TVM's run time");
}

void open_driver(const std::string& device, const std::string& path) {
  const std::string kind = device.substr(0, device.find(':'));
  if (kind.empty() || kind == "cpu") return;
  const std::string usual = kind == "cuda" ? "libtvm_runtime_cuda.so" : "libwherry_" + kind + ".so";
  void* library = open_global(path.empty() ? usual : path, kind + "'s driver");
  using Open = const char* (*)(const char*, const char*);
  auto open = reinterpret_cast<Open>(dlsym(library, ("wherry_" + kind + "_open").c_str()));
  const char* problem = open == nullptr ? nullptr : open(WHERRY_TVM_VERSION, nullptr);
  if (problem != nullptr) throw std::runtime_error(kind + "'s driver: " + problem);
}

}  // namespace wherry
