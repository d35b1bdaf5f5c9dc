#include "backends/vulkan/module.h"

#include <tvm/ffi/function.h>

#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
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

// Converts a number to a 32-bit word of the kernel's uniform.
uint32_t word_of(const std::string& kernel, DLDataType type, ffi::AnyView value) {
  uint32_t word = 0;
  if (type.code == kDLFloat && type.bits == 32) {
    auto number = static_cast<float>(value.cast<double>());
    std::memcpy(&word, &number, sizeof word);
    return word;
  }
  auto number = value.cast<int64_t>();
  bool is_signed = type.code == kDLInt;
  int64_t least = is_signed ? std::numeric_limits<int32_t>::min() : 0;
  int64_t most = is_signed ? int64_t{std::numeric_limits<int32_t>::max()}
                           : int64_t{std::numeric_limits<uint32_t>::max()};
  if (number < least || number > most) {
    TVM_FFI_THROW(ValueError) << "kernel " << kernel << ": " << number
                              << " does not fit the 32 bits of its argument";
  }
  return static_cast<uint32_t>(number);
}

// Returns the grid of a launch. TVM's kernels split a long first axis into x and z, where z counts
// multiples of x's limit; the uniform's last number is the last block's index.
std::array<uint32_t, 3> groups_of(const std::string& kernel, const std::array<int64_t, 6>& extents,
                                  const VkPhysicalDeviceLimits& limits) {
  int64_t turns = (extents[0] - 1) / limits.maxComputeWorkGroupCount[0] + 1;
  int64_t along_x = (extents[0] + turns - 1) / turns;
  if (turns > limits.maxComputeWorkGroupCount[2] ||
      extents[1] > limits.maxComputeWorkGroupCount[1] || extents[2] != 1) {
    TVM_FFI_THROW(ValueError) << "kernel " << kernel << " wants a grid of " << extents[0] << " x "
                              << extents[1] << " x " << extents[2] << "; the device allows "
                              << limits.maxComputeWorkGroupCount[1]
                              << " along the second axis, and none along the third. Take a smaller "
                                 "--prefill-chunk";
  }
  return {static_cast<uint32_t>(along_x), static_cast<uint32_t>(extents[1]),
          static_cast<uint32_t>(turns)};
}

// The kernels of a compiled library, built for each device on which one of them was called.
class Library {
 public:
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
    const VkPhysicalDeviceLimits& limits = device.physical().properties.limits;
    std::vector<Argument> tensors;
    std::vector<uint32_t> numbers;
    for (size_t i = 0; i < info.call.arguments.size(); ++i) {
      DLDataType type = info.call.arguments[i];
      ffi::AnyView value = args[static_cast<int>(i)];
      if (type.code == kDLOpaqueHandle) {
        bool written = info.call.written[tensors.size()];
        tensors.push_back({static_cast<const Buffer*>(value.cast<void*>()), written});
      } else {
        numbers.push_back(word_of(name, type, value));
      }
    }
    numbers.push_back(static_cast<uint32_t>(extents[0] - 1));
    auto groups = groups_of(name, extents, limits);
    device.launch(on(index, device).of(name), tensors, numbers, groups);
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

using Functions = backends::LibraryFunctions<Library>;

class VulkanModule final : public ffi::ModuleObj {
 public:
  explicit VulkanModule(const std::string& bytes) {
    std::tie(functions_, library_) = Functions::open(bytes);
  }

  const char* kind() const override { return "vulkan"; }
  int GetPropertyMask() const override {
    return ffi::Module::kBinarySerializable | ffi::Module::kRunnable;
  }
  ffi::Bytes SaveToBytes() const override { return ffi::Bytes(library_->bytes()); }
  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) override {
    return functions_->function(*library_, name);
  }

 private:
  Functions* functions_ = nullptr;
  std::shared_ptr<Library> library_;
};

}  // namespace

ffi::Module load_module(const ffi::Bytes& bytes) {
  return ffi::Module(ffi::make_object<VulkanModule>(std::string(bytes.data(), bytes.size())));
}

}  // namespace wherry::vulkan
