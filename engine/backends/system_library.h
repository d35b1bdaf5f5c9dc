// Opens a system library under one of several possible names.
#ifndef WHERRY_ENGINE_BACKENDS_SYSTEM_LIBRARY_H_
#define WHERRY_ENGINE_BACKENDS_SYSTEM_LIBRARY_H_

#include <initializer_list>

namespace wherry::backends {

// Returns the handle of the first library that can be opened, and never closes it. Throws a
// RuntimeError of tvm-ffi with the loader's message for each name, after `missing` ("Vulkan") and
// before `fix` (a command).
void* open_system_library(std::initializer_list<const char*> names, const char* missing,
                          const char* fix);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_SYSTEM_LIBRARY_H_
