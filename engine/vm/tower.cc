#include "vm/tower.h"

#include <utility>

#include "support/error.h"
#include "vm/threads.h"

namespace wherry {

namespace {

constexpr DLDataType kFloats{kDLFloat, 32, 1};
constexpr DLDataType kInts{kDLInt, 32, 1};
constexpr int64_t kChannels = 3, kLevels = 256;

// Returns the values of a tile's levels, float32 [n, patch] on the host.
ffi::Tensor values_of(const ImageTile& tile, int64_t patch) {
  const int64_t n = tile.n;
  ffi::Tensor values = allocate_host({n, patch}, kFloats);
  auto* to = static_cast<float*>(values.data_ptr());
  const uint8_t* from = tile.patches.data();
  for (int64_t channel = 0; channel < n * kChannels; ++channel) {
    const float* levels = &tile.levels[static_cast<size_t>(channel % kChannels * kLevels)];
    for (int64_t i = 0; i < patch / kChannels; ++i) *to++ = levels[*from++];
  }
  return values;
}

template <typename T>
ffi::Tensor array_of(const std::vector<T>& values, const std::vector<int64_t>& shape,
                     DLDataType dtype) {
  ffi::Tensor host = allocate_host(shape, dtype);
  std::copy(values.begin(), values.end(), static_cast<T*>(host.data_ptr()));
  return host;
}

// Returns an input of the tower for a tile, on the host.
ffi::Tensor input_of(const std::string& name, const ImageTile& tile, const Metadata& metadata) {
  const int64_t n = tile.n;
  const std::vector<int64_t> tapped{n, metadata.position_taps};
  if (name == "patches") return values_of(tile, metadata.patch);
  if (name == "positions") {
    const bool weighted = metadata.takes("position_weights");
    return array_of(tile.positions, weighted ? tapped : std::vector<int64_t>{n}, kInts);
  }
  if (name == "position_weights") return array_of(tile.position_weights, tapped, kFloats);
  if (name == "coordinates") return array_of(tile.coordinates, {n, 2}, kInts);
  if (name == "sequences") {
    return array_of(std::vector<int32_t>(static_cast<size_t>(n)), {n}, kInts);
  }
  return array_of(std::vector<int32_t>{0, static_cast<int32_t>(n)}, {2}, kInts);  // query_indptr
}

}  // namespace

Tower::Tower(std::string weights, std::string device, ModelOptions options)
    : weights_(std::move(weights)), device_(std::move(device)), options_(std::move(options)) {}

const Metadata& Tower::metadata() { return open().shared->metadata; }

ffi::Tensor Tower::see(const ImageTile& tile) {
  std::lock_guard<std::mutex> lock(running_);
  OpenedLibrary& library = open();
  if (!see_) {
    library.load(weights_, options_);
    vm_ = std::make_unique<VirtualMachine>(library.shared->executable, library.shared->device);
    see_ = vm_->function(name_of(Entry::kSee));
  }
  return run(tile);
}

OpenedLibrary& Tower::open() {
  std::lock_guard<std::mutex> lock(opening_);
  if (!library_) {
    library_ =
        std::make_unique<OpenedLibrary>(options_.vision, device_, options_, parse_tower_metadata);
  }
  return *library_;
}

ffi::Tensor Tower::run(const ImageTile& tile) {
  const VmShared& shared = *library_->shared;
  const Metadata& metadata = shared.metadata;
  configure_kernel_threads(shared.threads);
  std::vector<ffi::Tensor> inputs;
  for (const std::string& name : metadata.inputs) {
    inputs.push_back(to_device(input_of(name, tile, metadata), shared.device));
  }
  std::vector<ffi::AnyView> arguments(inputs.begin(), inputs.end());
  arguments.insert(arguments.end(), shared.params.begin(), shared.params.end());
  ffi::Any result;
  see_->CallPacked(arguments.data(), static_cast<int32_t>(arguments.size()), &result);
  auto features = std::move(result).cast<ffi::Tensor>();
  const std::string expected =
      describe(kFloats, {tile.n / metadata.patches_per_row, metadata.image_features});
  const std::string has = describe(features.dtype(), shape_of(features));
  if (has != expected || !features.IsContiguous()) {
    throw Error(WHERRY_INCOMPATIBLE, concat("see returned ", has, ", not ", expected));
  }
  return features;
}

}  // namespace wherry
