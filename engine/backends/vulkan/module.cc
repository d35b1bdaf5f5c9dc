#include "backends/vulkan/module.h"

#include <tvm/ffi/function.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/library.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/kernels.h"
#include "backends/vulkan/pipelines.h"
#include "support/hash.h"

namespace wherry::vulkan {

namespace {

namespace ffi = tvm::ffi;

// The kernels of a compiled library, built for each device on which one of them was called.
class Library {
 public:
  static constexpr char kKind[] = "vulkan";

  explicit Library(const std::string& bytes)
      : bytes_(bytes), kernels_(read_kernels(bytes)), hash_(Hash().text(bytes).value()) {}

  const std::string& bytes() const { return bytes_; }
  bool has(const std::string& name) const { return kernels_.count(name) != 0; }

  // Launches the kernel `name`. args: the kernel's arguments, then an extent for each of its axes.
  void launch(const std::string& name, ffi::PackedArgs args) {
    const KernelInfo& info = kernels_.at(name);
    auto extents = info.call.extents(name, args);
    for (int64_t extent : extents) {
      if (extent <= 0) return;  // an empty launch computes nothing
    }
    int index = backends::Devices::current();
    auto& device = static_cast<VulkanDevice&>(devices().device(index));
    std::vector<Argument> tensors;
    std::vector<uint32_t> numbers;
    for (size_t i = 0; i < info.call.arguments.size(); ++i) {
      DLDataType type = info.call.arguments[i];
      ffi::AnyView value = args[static_cast<int>(i)];
      if (type.code == kDLOpaqueHandle) {
        bool written = info.call.written[tensors.size()];
        tensors.push_back({static_cast<const Buffer*>(value.cast<void*>()), written});
      } else {
        numbers.push_back(backends::word_of(name, type, value));
      }
    }
    numbers.push_back(static_cast<uint32_t>(extents[0] - 1));  // the last block's index
    const auto& most = device.physical().properties.limits.maxComputeWorkGroupCount;
    auto grid = backends::grid_of(name, extents, {most[0], most[1], most[2]});
    device.launch(on(index, device).of(name), tensors, numbers, grid);
  }

 private:
  const Pipelines& on(int index, VulkanDevice& device) {
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

}  // namespace

ffi::Module load_module(const ffi::Bytes& bytes) {
  return backends::module_of<backends::KernelModule<Library>>(bytes);
}

}  // namespace wherry::vulkan
