#include "backends/system_library.h"

#include <dlfcn.h>
#include <tvm/ffi/error.h>

#include <string>

namespace wherry::backends {

void* open_system_library(std::initializer_list<const char*> names, const char* missing,
                          const char* fix) {
  std::string tried;
  for (const char* name : names) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    tried += std::string("\n  ") + dlerror();
  }
  TVM_FFI_THROW(RuntimeError) << missing << " is not installed:" << tried << "\n" << fix;
  throw;
}

}  // namespace wherry::backends
