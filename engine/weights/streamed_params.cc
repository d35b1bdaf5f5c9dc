#include "weights/streamed_params.h"

#include <algorithm>
#include <utility>

#include "support/error.h"

namespace wherry {

StreamedParams::StreamedParams(const Metadata& metadata, const TensorCache& cache, DLDevice device,
                               PackFunction pack)
    : metadata_(metadata),
      device_(device),
      pack_(std::move(pack)),
      waiting_(groups_of(metadata)),
      params_(metadata.params.size()) {
  check_stored(metadata, cache);
  for (const PackGroup& group : waiting_) {
    for (const std::string& name : group.from) ++arrivals_[name].users;
  }
  for (const ParamSpec& spec : metadata.params) {
    if (spec.pack.empty()) ++arrivals_[spec.from[0]].users;
  }
  for (const auto& [name, arrival] : arrivals_) required_.push_back(*cache.find(name));
  std::sort(required_.begin(), required_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::make_pair(a.shard, a.offset) < std::make_pair(b.shard, b.offset);
  });
}

ffi::Tensor StreamedParams::place(size_t i) {
  const StoredTensor& stored = required_.at(i);
  Arrival& arrival = arrivals_.at(stored.name);
  if (arrival.filled) throw Error(WHERRY_INVALID_ARGUMENT, stored.name + " has come already");
  if (!arrival.tensor.defined()) arrival.tensor = allocate(stored.shape, stored.dtype, device_);
  return arrival.tensor;
}

void StreamedParams::filled(size_t i) {
  const std::string& name = required_.at(i).name;
  Arrival& arrival = arrivals_.at(name);
  if (arrival.filled) throw Error(WHERRY_INVALID_ARGUMENT, name + " has come already");
  if (!arrival.tensor.defined()) {
    throw Error(WHERRY_INVALID_ARGUMENT, name + " has no place yet");
  }
  arrival.filled = true;
  for (size_t p = 0; p < params_.size(); ++p) {
    const ParamSpec& spec = metadata_.params[p];
    if (!spec.pack.empty() || spec.from[0] != name) continue;
    params_[p] = arrival.tensor;
    release(name);
  }
  for (size_t g = 0; g < waiting_.size();) {
    if (!complete(waiting_[g])) {
      ++g;
      continue;
    }
    PackGroup group = std::move(waiting_[g]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(g));
    run(group);
  }
}

bool StreamedParams::complete(const PackGroup& group) const {
  return std::all_of(group.from.begin(), group.from.end(),
                     [&](const std::string& name) { return arrivals_.at(name).filled; });
}

void StreamedParams::run(const PackGroup& group) {
  std::vector<ffi::Tensor> from;
  for (const std::string& name : group.from) from.push_back(arrivals_.at(name).tensor);
  std::vector<ffi::Tensor> tensors = chosen_results(group, metadata_, pack_(group.pack, from));
  for (size_t k = 0; k < tensors.size(); ++k) params_[group.params[k]] = tensors[k];
  for (const std::string& name : group.from) release(name);
}

void StreamedParams::release(const std::string& name) {
  Arrival& arrival = arrivals_.at(name);
  if (--arrival.users == 0) arrival.tensor = ffi::Tensor();
}

std::vector<ffi::Tensor> StreamedParams::finish() {
  Problems problems;
  for (const auto& [name, arrival] : arrivals_) {
    if (!arrival.filled) problems.add(name);
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, "tensors of the weights have not come");
  return std::move(params_);
}

}  // namespace wherry
