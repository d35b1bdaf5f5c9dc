// Loads a model from a compiled library: a Relax VM executable (docs/design/compiled-library.md).
#ifndef WHERRY_ENGINE_VM_VM_MODEL_H_
#define WHERRY_ENGINE_VM_VM_MODEL_H_

#include <memory>
#include <string>

#include "config/config.h"
#include "model/model.h"
#include "weights/streamed_params.h"

namespace wherry {

// Loads a model. lib: a file, or "system:<prefix>" for a library linked into the program. The
// process must have loaded TVM's runtime (libtvm_runtime, which registers the VM). Throws Error:
// WHERRY_NOT_FOUND for a missing file, WHERRY_INCOMPATIBLE for a library or weights that do not
// fit.
std::shared_ptr<const Model> load_vm_model(const std::string& lib, const std::string& weights,
                                           const std::string& device, const ModelOptions& options);

// Loads a model whose weights arrive in pieces, for example from the network.
class VmLoader {
 public:
  // index: the text of tensor-cache.json. Other arguments and errors are those of load_vm_model.
  VmLoader(const std::string& lib, const std::string& index, const std::string& device,
           const ModelOptions& options);
  ~VmLoader();
  VmLoader(const VmLoader&) = delete;
  VmLoader& operator=(const VmLoader&) = delete;

  const TensorCache& index() const;
  StreamedParams& params();

  // Returns the model; call it last, when all tensors are filled. Throws as StreamedParams::finish
  // does.
  std::shared_ptr<const Model> finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_VM_MODEL_H_
