// The tower of a model that takes images: a library of its own, which computes image features.
#ifndef WHERRY_ENGINE_VM_TOWER_H_
#define WHERRY_ENGINE_VM_TOWER_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "config/config.h"
#include "model/model.h"
#include "vm/opened_library.h"

namespace wherry {

// Thread-safe: engines of one model share its tower, and run it one after the other.
class Tower {
 public:
  // Opens nothing yet. The arguments are those of load_vm_model, with options.vision as the library
  // and the model's folder of weights.
  Tower(std::string weights, std::string device, ModelOptions options);

  // Returns the library's metadata, and opens it at the first call; does not wait for see(). Throws
  // as load_vm_model does.
  const Metadata& metadata();
  // Computes the features of a tile, float32 [n / patches_per_row, image_features] on the device.
  // The first call loads the weights.
  ffi::Tensor see(const ImageTile& tile);

 private:
  OpenedLibrary& open();
  ffi::Tensor run(const ImageTile& tile);

  const std::string weights_, device_;
  const ModelOptions options_;
  std::mutex opening_;  // guards library_, whose metadata never changes
  std::unique_ptr<OpenedLibrary> library_;
  std::mutex running_;                  // guards the library's parameters, and all below
  std::unique_ptr<VirtualMachine> vm_;  // null until the weights are loaded
  std::optional<ffi::Function> see_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_TOWER_H_
