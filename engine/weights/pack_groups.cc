#include "weights/pack_groups.h"

#include <map>
#include <utility>

#include "support/error.h"

namespace wherry {

std::vector<PackGroup> groups_of(const Metadata& metadata) {
  std::map<std::pair<std::string, std::vector<std::string>>, size_t> known;
  std::vector<PackGroup> groups;
  for (size_t i = 0; i < metadata.params.size(); ++i) {
    const ParamSpec& spec = metadata.params[i];
    if (spec.pack.empty()) continue;
    auto [it, added] = known.try_emplace({spec.pack, spec.from}, groups.size());
    if (added) groups.push_back({spec.pack, spec.from, {}});
    groups[it->second].params.push_back(i);
  }
  return groups;
}

void check_stored(const Metadata& metadata, const TensorCache& cache) {
  Problems problems;
  for (const ParamSpec& spec : metadata.params) {
    for (const std::string& name : spec.from) {
      const StoredTensor* stored = cache.find(name);
      if (stored == nullptr) {
        problems.add(name, " is missing (for parameter ", spec.name, ")");
        continue;
      }
      std::string has = describe(stored->dtype, stored->shape);
      std::string expected = describe(spec.dtype, spec.shape);
      if (spec.pack.empty() && has != expected) {
        problems.add(name, " is ", has, "; the library takes ", expected);
      }
    }
  }
  problems.raise(WHERRY_INCOMPATIBLE, "the weights do not fit the library");
}

std::vector<ffi::Tensor> chosen_results(const PackGroup& group, const Metadata& metadata,
                                        const std::vector<ffi::Tensor>& results) {
  std::vector<ffi::Tensor> chosen;
  Problems problems;
  for (size_t i : group.params) {
    const ParamSpec& spec = metadata.params[i];
    if (spec.index < 0 || spec.index >= static_cast<int64_t>(results.size())) {
      problems.add(spec.name, ": index ", spec.index, " of ", results.size(), " results");
      continue;
    }
    const ffi::Tensor& tensor = results[static_cast<size_t>(spec.index)];
    std::string has = describe(tensor.dtype(), shape_of(tensor));
    std::string expected = describe(spec.dtype, spec.shape);
    if (has != expected) problems.add(spec.name, " became ", has, "; the metadata says ", expected);
    if (!tensor.IsContiguous()) problems.add(spec.name, " is not contiguous");
    chosen.push_back(tensor);
  }
  problems.raise(WHERRY_INCOMPATIBLE, group.pack + " does not do what the library's metadata says");
  return chosen;
}

}  // namespace wherry
