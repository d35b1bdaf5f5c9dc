// Which parameters of a library come from which of its pack functions, and whether they fit.
#ifndef WHERRY_ENGINE_WEIGHTS_PACK_GROUPS_H_
#define WHERRY_ENGINE_WEIGHTS_PACK_GROUPS_H_

#include <string>
#include <vector>

#include "model/metadata.h"
#include "weights/tensor_cache.h"

namespace wherry {

// Parameters that one call of a pack function gives.
struct PackGroup {
  std::string pack;
  std::vector<std::string> from;  // stored tensors, its arguments
  std::vector<size_t> params;     // positions in the metadata
};

std::vector<PackGroup> groups_of(const Metadata& metadata);

// Throws WHERRY_INCOMPATIBLE with every stored tensor that is missing or does not fit.
void check_stored(const Metadata& metadata, const TensorCache& cache);

// One tensor for each of group.params, from the results of the group's function. Throws
// WHERRY_INCOMPATIBLE if they are not what the metadata says.
std::vector<ffi::Tensor> chosen_results(const PackGroup& group, const Metadata& metadata,
                                        const std::vector<ffi::Tensor>& results);

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_PACK_GROUPS_H_
