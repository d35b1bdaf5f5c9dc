// Groups a library's parameters by pack function call, and checks shapes and dtypes.
#ifndef WHERRY_ENGINE_WEIGHTS_PACK_GROUPS_H_
#define WHERRY_ENGINE_WEIGHTS_PACK_GROUPS_H_

#include <string>
#include <vector>

#include "model/metadata.h"
#include "weights/tensor_cache.h"

namespace wherry {

// The parameters that one call of a pack function returns, and its arguments.
struct PackGroup {
  std::string pack;
  std::vector<std::string> from;  // stored tensors that are the function's arguments
  std::vector<size_t> params;     // positions of the parameters in the metadata
};

std::vector<PackGroup> groups_of(const Metadata& metadata);

// Checks stored tensors against the metadata. Throws WHERRY_INCOMPATIBLE with every stored tensor
// that is missing or does not fit.
void check_stored(const Metadata& metadata, const TensorCache& cache);

// Selects one tensor for each of group.params from the function's results. Throws
// WHERRY_INCOMPATIBLE if their shapes or dtypes differ from the metadata.
std::vector<ffi::Tensor> chosen_results(const PackGroup& group, const Metadata& metadata,
                                        const std::vector<ffi::Tensor>& results);

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_PACK_GROUPS_H_
