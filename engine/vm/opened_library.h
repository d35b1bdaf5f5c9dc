// A compiled library whose weights are being loaded.
#ifndef WHERRY_ENGINE_VM_OPENED_LIBRARY_H_
#define WHERRY_ENGINE_VM_OPENED_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "vm/virtual_machine.h"
#include "vm/vm_session.h"
#include "weights/weights.h"

namespace wherry {

struct OpenedLibrary {
  // Opens a library and checks that it has the functions that its metadata names. parse: reads the
  // metadata. Throws as load_vm_model does.
  OpenedLibrary(const std::string& lib, const std::string& device, const ModelOptions& options,
                Metadata (*parse)(const std::string&) = parse_metadata);

  // Returns a function that packs weights; it refers to this object.
  PackFunction packer();
  // Loads the parameters from a folder of weights.
  void load(const std::string& weights, const ModelOptions& options);
  // Sets the parameters, and frees what loading them took.
  void finish(const std::vector<ffi::Tensor>& params);

  std::shared_ptr<VmShared> shared;
  std::unique_ptr<VirtualMachine> vm;  // null when the parameters are loaded
  uint64_t hash = 0;                   // hash of the library's bytes
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_OPENED_LIBRARY_H_
