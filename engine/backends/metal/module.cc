#include "backends/metal/module.h"

#include <tvm/ffi/function.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/library.h"
#include "backends/metal/device.h"
#include "backends/metal/kernels.h"
#include "backends/metal/pipelines.h"
#include "support/hash.h"

namespace wherry::metal {

namespace {

namespace ffi = tvm::ffi;

// Returns a number as a kernel reads it, in the low bytes of eight (TVM's ArgUnion64).
uint64_t number_of(const std::string& kernel, DLDataType type, ffi::AnyView value) {
  if (type.code == kDLInt || type.code == kDLUInt) {
    return static_cast<uint64_t>(value.cast<int64_t>());
  }
  return backends::word_of(kernel, type, value);
}

// The kernels of a compiled library, built for each device on which one of them was called.
class Library {
 public:
  static constexpr char kKind[] = "metal";

  explicit Library(const std::string& bytes)
      : bytes_(bytes), kernels_(read_kernels(bytes)), hash_(Hash().text(bytes).value()) {}

  const std::string& bytes() const { return bytes_; }
  bool has(const std::string& name) const { return kernels_.count(name) != 0; }

  // Launches the kernel `name`. args: the kernel's arguments, then an extent for each of its axes.
  void launch(const std::string& name, ffi::PackedArgs args) {
    const KernelInfo& info = kernels_.at(name);
    auto extents = info.call.extents(name, args);
    std::array<UInt, 6> sizes{};
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (extents[i] <= 0) return;  // an empty launch computes nothing, and Metal rejects it
      sizes[i] = static_cast<UInt>(extents[i]);
    }
    int index = backends::Devices::current();
    auto& device = static_cast<MetalDevice&>(devices().device(index));
    Launch launch{};
    launch.groups = {sizes[0], sizes[1], sizes[2]};
    launch.threads = {sizes[3], sizes[4], sizes[5]};
    for (size_t i = 0; i < info.call.arguments.size(); ++i) {
      DLDataType type = info.call.arguments[i];
      ffi::AnyView value = args[static_cast<int>(i)];
      if (type.code == kDLOpaqueHandle) {
        const size_t place = launch.tensors.size();
        const bool written = place >= info.call.written.size() || info.call.written[place];
        launch.tensors.push_back({static_cast<Buffer*>(value.cast<void*>()), written});
      } else {
        launch.numbers.push_back(number_of(name, type, value));
      }
    }
    const Own pipeline = on(index, device).of(name, sizes[3] * sizes[4] * sizes[5]);
    launch.pipeline = pipeline.get();
    device.launch(launch);
  }

  std::string source() const {
    std::string all;
    for (const auto& [name, info] : kernels_) all += info.source + "\n";
    return all;
  }

 private:
  Pipelines& on(int index, MetalDevice& device) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& pipelines = pipelines_[index];
    if (!pipelines) pipelines = std::make_unique<Pipelines>(device, kernels_, hash_);
    return *pipelines;
  }

  std::string bytes_;
  std::map<std::string, KernelInfo> kernels_;
  uint64_t hash_;
  std::mutex mutex_;
  // The compiled pipelines of each device index.
  std::map<int, std::unique_ptr<Pipelines>> pipelines_;
};

class MetalModule final : public backends::KernelModule<Library> {
 public:
  using KernelModule::KernelModule;

  ffi::String InspectSource(const ffi::String&) const override { return library().source(); }
};

}  // namespace

ffi::Module load_module(const ffi::Bytes& bytes) { return backends::module_of<MetalModule>(bytes); }

}  // namespace wherry::metal
