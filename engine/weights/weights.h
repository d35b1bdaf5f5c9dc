// The parameters of `forward`: portable tensors as they are stored, or packed for the library.
#ifndef WHERRY_ENGINE_WEIGHTS_WEIGHTS_H_
#define WHERRY_ENGINE_WEIGHTS_WEIGHTS_H_

#include <functional>
#include <string>
#include <vector>

#include "model/metadata.h"
#include "weights/tensor_cache.h"

namespace wherry {

// Runs a library's pack function on the device: its tensors, a tuple's elements in order.
using PackFunction = std::function<std::vector<ffi::Tensor>(const std::string& name,
                                                            const std::vector<ffi::Tensor>& from)>;

struct WeightsOptions {
  std::string pack_dir;       // empty: packed tensors stay in memory, and nothing is checked
  uint64_t library_hash = 0;  // of the library's bytes, for the packed file's name
  DLDevice device{kDLCPU, 0};
  int threads = 1;    // that check the weights
  bool check = true;  // what is mapped; false: the caller knows that it is whole
};

// Names the packed file: the library, its metadata, the index and the shards' sizes and times.
uint64_t packed_key(const Metadata& metadata, const TensorCache& cache, uint64_t library_hash);

// One tensor a parameter, in the order of the metadata, on the device. `pack` is called once per
// (pack, from), one result held at a time when the host has a pack_dir; not at all when a valid
// packed file is there. With a pack_dir all that is used is compared with the checksums of the
// first load, unless options.check is false; a packed file that is damaged is made again. Throws
// WHERRY_INCOMPATIBLE with every missing, unfit or changed tensor.
std::vector<ffi::Tensor> load_params(const Metadata& metadata, const TensorCache& cache,
                                     const WeightsOptions& options, const PackFunction& pack);

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_WEIGHTS_H_
