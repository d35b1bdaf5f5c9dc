// Loads a compiled model that is an archive of object files (`model.tar`). LLVM's ORC JIT links
// them in memory, so the machine needs no linker.
#ifndef WHERRY_ENGINE_VM_OBJECTS_H_
#define WHERRY_ENGINE_VM_OBJECTS_H_

#include <tvm/ffi/extra/module.h>

#include <string>
#include <string_view>
#include <vector>

#include "tensors/device.h"

namespace wherry {

// Returns whether `lib` is the path of an archive of object files, according to its suffix.
bool is_archive(const std::string& lib);

// Returns the contents of the regular files in a tar archive (POSIX.1-1988, ustar), in the
// archive's order. The results point into `archive`. Throws WHERRY_INCOMPATIBLE if the archive is
// damaged.
std::vector<std::string_view> archived_files(std::string_view archive);

// Links the object files of the archive at path `lib` into this process and returns the module.
// Throws WHERRY_INCOMPATIBLE if the archive is damaged, an object is for another machine, or
// libtvm_ffi_orcjit is not loaded.
ffi::Module load_objects(const std::string& lib);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_OBJECTS_H_
