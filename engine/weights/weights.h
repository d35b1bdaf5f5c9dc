// Loads the parameters of `forward`: stored tensors as they are, or packed for the library.
#ifndef WHERRY_ENGINE_WEIGHTS_WEIGHTS_H_
#define WHERRY_ENGINE_WEIGHTS_WEIGHTS_H_

#include <functional>
#include <string>
#include <vector>

#include "model/metadata.h"
#include "weights/tensor_cache.h"

namespace wherry {

// Runs a library's pack function on the device; returns its result, or its tuple's elements.
using PackFunction = std::function<std::vector<ffi::Tensor>(const std::string& name,
                                                            const std::vector<ffi::Tensor>& from)>;

struct WeightsOptions {
  // Folder for the packed file; if empty, packed tensors stay in memory, without checks.
  std::string pack_dir;
  uint64_t library_hash = 0;  // hash of the library's bytes, for the packed file's name
  DLDevice device{kDLCPU, 0};
  int threads = 1;    // number of threads that check weights
  bool check = true;  // whether to check mapped data; false if the caller did
};

// Returns the packed file's key: a hash of library, metadata, index, and the shards' sizes and
// times.
uint64_t packed_key(const Metadata& metadata, const TensorCache& cache, uint64_t library_hash);

// Returns one tensor on the device for each parameter, in the metadata's order. Calls `pack` once
// for each (pack, from), or never if there is a valid packed file. On the host with a pack_dir,
// only one result is in memory at a time. With a pack_dir and unless options.check is false,
// compares all data with the checksums of the first load; rebuilds a damaged packed file. Throws
// WHERRY_INCOMPATIBLE with every missing, unfit or changed tensor.
std::vector<ffi::Tensor> load_params(const Metadata& metadata, const TensorCache& cache,
                                     const WeightsOptions& options, const PackFunction& pack);

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_WEIGHTS_H_
