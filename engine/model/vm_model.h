// A compiled library: a Relax VM executable with the functions of docs/design/compiled-library.md.
#ifndef WHERRY_ENGINE_MODEL_VM_MODEL_H_
#define WHERRY_ENGINE_MODEL_VM_MODEL_H_

#include <memory>
#include <string>

#include "abi/config.h"
#include "model/model.h"
#include "weights/streamed_params.h"

namespace wherry {

// lib: a file, or "system:<prefix>" for one linked into the program. Needs TVM's run time in the
// process (libtvm_runtime, which registers the VM). Throws Error: WHERRY_NOT_FOUND for a missing
// file, WHERRY_INCOMPATIBLE for a library or weights that do not fit.
std::shared_ptr<const Model> load_vm_model(const std::string& lib, const std::string& weights,
                                           const std::string& device, const ModelOptions& options);

// The same where the weights come piece by piece.
class VmLoader {
 public:
  // index: the text of tensor-cache.json. The rest, and what is thrown: as load_vm_model.
  VmLoader(const std::string& lib, const std::string& index, const std::string& device,
           const ModelOptions& options);
  ~VmLoader();
  VmLoader(const VmLoader&) = delete;
  VmLoader& operator=(const VmLoader&) = delete;

  const TensorCache& index() const;
  StreamedParams& params();

  // When all have come; nothing may be called after it. Throws as StreamedParams::finish.
  std::shared_ptr<const Model> finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_VM_MODEL_H_
