#include "vm/virtual_machine.h"

#include <filesystem>

#include "support/error.h"
#include "support/hash.h"
#include "support/matrix_units.h"
#include "support/tvm_calls.h"
#include "system/path.h"
#include "tensors/mapped_file.h"
#include "vm/objects.h"
#include "vm/threads.h"

namespace wherry {

namespace {

constexpr char kSystemPrefix[] = "system:";
constexpr int kPooledAllocator = 2;  // TVM's AllocatorType::kPooled

bool is_system(const std::string& lib) { return lib.rfind(kSystemPrefix, 0) == 0; }

ffi::Module open_library(const std::string& lib) {
  if (is_system(lib)) {
    auto load = ffi::Function::GetGlobalRequired("ffi.SystemLib");
    return load(lib.substr(sizeof kSystemPrefix - 1)).cast<ffi::Module>();
  }
  std::error_code error;
  // The path is absolute, because dlopen searches bare names in system folders.
  std::filesystem::path path = std::filesystem::absolute(path_of(lib), error);
  if (!std::filesystem::is_regular_file(path, error)) {
    throw Error(WHERRY_NOT_FOUND, "no compiled library " + lib);
  }
  const std::string file = text_of(path);
  return is_archive(lib) ? load_objects(file) : load_module(file);
}

}  // namespace

ffi::Function open_executable(const std::string& lib) {
  take_kernel_launches();
  allow_matrix_units();  // a library that needs them is chosen only where the system allows them
  try {
    ffi::Module library = open_library(lib);
    auto load = function_of(library, "vm_load_executable");
    if (load.has_value()) {
      // The closure captures the library, because the function alone would not keep it loaded.
      return ffi::Function::FromTyped([library, load = *load]() -> ffi::Any { return load(); });
    }
  } catch (const ffi::Error& error) {
    const bool no_runtime = !ffi::Function::GetGlobal("vm.builtin.copy").has_value();
    throw Error(WHERRY_INCOMPATIBLE,
                concat(lib, " cannot be loaded: ", std::string(error.message()),
                       no_runtime ? "\nTVM's run time is not in this process: load libtvm_runtime "
                                    "(with RTLD_GLOBAL) first"
                                  : ""));
  }
  if (is_system(lib)) {
    throw Error(WHERRY_NOT_FOUND, "no model " + lib.substr(sizeof kSystemPrefix - 1) +
                                      " is linked into this program: link the library that `wherry "
                                      "package` has written");
  }
  throw Error(WHERRY_INCOMPATIBLE,
              lib + " is not a compiled model: it holds no Relax VM executable");
}

uint64_t hash_of_library(const std::string& lib) {
  if (is_system(lib)) return Hash().text(lib).value();
  auto file = MappedFile::open(lib);
  return Hash().bytes(file->data(), file->size()).value();
}

void release_pooled_memory() {
  auto clear = ffi::Function::GetGlobal("vm.builtin.memory_manager.clear");
  if (clear.has_value()) (*clear)();
}

VirtualMachine::VirtualMachine(const ffi::Function& executable, DLDevice device)
    : module_(executable().cast<ffi::Module>()) {
  ffi::Function initialise = function("vm_initialization");
  auto kind = static_cast<int>(device.device_type);
  if (is_host(device)) {
    initialise(kind, device.device_id, kPooledAllocator);
  } else {  // a VM on a device also needs the host, for shapes
    initialise(kind, device.device_id, kPooledAllocator, static_cast<int>(kDLCPU), 0,
               kPooledAllocator);
  }
}

ffi::Optional<ffi::Function> VirtualMachine::find(const std::string& name) const {
  return function_of(module_, name);
}

ffi::Function VirtualMachine::function(const std::string& name) const {
  auto match = find(name);
  if (!match.has_value()) {
    throw Error(WHERRY_INCOMPATIBLE, concat("the library has no function \"", name, "\""));
  }
  return *match;
}

}  // namespace wherry
