// Opening a library of the system by one of its names.
#ifndef WHERRY_ENGINE_BACKENDS_SYSTEM_LIBRARY_H_
#define WHERRY_ENGINE_BACKENDS_SYSTEM_LIBRARY_H_

#include <initializer_list>

namespace wherry::backends {

// Handle of the first library that can be opened; it stays open. Throws a RuntimeError of tvm-ffi
// with the loader's words for each, between `missing` ("Vulkan") and `fix`, what to type.
void* open_system_library(std::initializer_list<const char*> names, const char* missing,
                          const char* fix);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_SYSTEM_LIBRARY_H_
