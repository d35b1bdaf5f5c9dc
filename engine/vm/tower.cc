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
  const auto n = static_cast<int64_t>(tile.positions.size());
  ffi::Tensor values = allocate_host({n, patch}, kFloats);
  auto* to = static_cast<float*>(values.data_ptr());
  const uint8_t* from = tile.patches.data();
  for (int64_t channel = 0; channel < n * kChannels; ++channel) {
    const float* levels = &tile.levels[static_cast<size_t>(channel % kChannels * kLevels)];
    for (int64_t i = 0; i < patch / kChannels; ++i) *to++ = levels[*from++];
  }
  return values;
}

ffi::Tensor int32s(const std::vector<int32_t>& values, DLDevice device) {
  ffi::Tensor host = allocate_host({static_cast<int64_t>(values.size())}, kInts);
  std::copy(values.begin(), values.end(), static_cast<int32_t*>(host.data_ptr()));
  return to_device(host, device);
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
  const auto n = static_cast<int64_t>(tile.positions.size());
  configure_kernel_threads(shared.threads);
  const ffi::Tensor patches = to_device(values_of(tile, metadata.patch), shared.device);
  const ffi::Tensor positions = int32s(tile.positions, shared.device);
  const ffi::Tensor sequences = int32s(std::vector<int32_t>(tile.positions.size()), shared.device);
  const ffi::Tensor indptr = int32s({0, static_cast<int32_t>(n)}, shared.device);
  std::vector<ffi::AnyView> arguments{patches, positions, sequences, indptr};
  arguments.insert(arguments.end(), shared.params.begin(), shared.params.end());
  ffi::Any result;
  see_->CallPacked(arguments.data(), static_cast<int32_t>(arguments.size()), &result);
  auto features = std::move(result).cast<ffi::Tensor>();
  const std::string expected =
      describe(kFloats, {n / metadata.patches_per_row, metadata.image_features});
  const std::string has = describe(features.dtype(), shape_of(features));
  if (has != expected || !features.IsContiguous()) {
    throw Error(WHERRY_INCOMPATIBLE, concat("see returned ", has, ", not ", expected));
  }
  return features;
}

}  // namespace wherry
