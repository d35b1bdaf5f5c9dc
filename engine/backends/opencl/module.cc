#include "backends/opencl/module.h"

#include <tvm/ffi/function.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backends/library.h"
#include "backends/opencl/device.h"
#include "backends/opencl/program.h"
#include "backends/opencl/source.h"

namespace wherry::opencl {

namespace {

namespace ffi = tvm::ffi;

// One kernel of a library, built for each device on which it was called.
class LaunchedKernel {
 public:
  LaunchedKernel(std::string name, KernelInfo info)
      : name_(std::move(name)), info_(std::move(info)) {
    for (int axis : info_.call.axes) dimensions_ = std::max(dimensions_, axis % 3 + 1);
  }
  ~LaunchedKernel() {
    for (auto& [index, kernel] : kernels_) Api::get().ReleaseKernel(kernel);
  }
  LaunchedKernel(const LaunchedKernel&) = delete;
  LaunchedKernel& operator=(const LaunchedKernel&) = delete;

  const std::string& source() const { return info_.source; }

  // Launches the kernel. args: the kernel's arguments, then an extent for each of its axes.
  void launch(ffi::PackedArgs args) {
    auto requested = info_.call.extents(name_, args);
    std::array<size_t, 6> extents{};
    for (size_t i = 0; i < requested.size(); ++i) {
      // An empty launch computes nothing, and OpenCL rejects empty ranges.
      if (requested[i] <= 0) return;
      extents[i] = static_cast<size_t>(requested[i]);
    }
    std::array<size_t, 3> global{};
    for (size_t i = 0; i < 3; ++i) global[i] = extents[i] * extents[3 + i];

    int index = backends::Devices::current();
    auto& device = static_cast<OpenClDevice&>(devices().device(index));
    // A kernel object has its arguments as state, so only one thread may set them and launch.
    std::lock_guard<std::mutex> lock(mutex_);
    Kernel kernel = kernel_on(index, device);
    for (size_t i = 0; i < info_.call.arguments.size(); ++i) {
      set(kernel, i, args[static_cast<int>(i)]);
    }
    Int status = device.launch(kernel, dimensions_, global.data(), &extents[3]);
    if (status != kSuccess) {
      size_t group = extents[3] * extents[4] * extents[5];
      std::string call = "launch of kernel " + name_ + " in groups of " + std::to_string(group) +
                         " (the device allows " +
                         std::to_string(device.number<size_t>(kMaxWorkGroupSize)) + ")";
      check(status, call.c_str());
    }
  }

 private:
  Kernel kernel_on(int index, const OpenClDevice& device) {
    auto match = kernels_.find(index);
    if (match != kernels_.end()) return match->second;
    return kernels_[index] = build_kernel(device, name_, info_.source);
  }

  void set(Kernel kernel, size_t i, ffi::AnyView value) const {
    DLDataType type = info_.call.arguments[i];
    if (type.code == kDLOpaqueHandle) {
      auto* buffer = static_cast<Buffer*>(value.cast<void*>());
      set_bytes(kernel, i, &buffer->memory, sizeof buffer->memory);
    } else if (type.code == kDLFloat && type.bits == 32) {
      auto number = static_cast<float>(value.cast<double>());
      set_bytes(kernel, i, &number, sizeof number);
    } else if (type.code == kDLInt || type.code == kDLUInt) {
      auto number = value.cast<int64_t>();  // numbers are little-endian: the low bytes come first
      set_bytes(kernel, i, &number, type.bits == 1 ? 1 : type.bits / 8u);
    } else {
      TVM_FFI_THROW(ValueError) << "kernel " << name_ << ": argument " << i << " has type code "
                                << int{type.code} << " of " << int{type.bits}
                                << " bits; accepted are tensors, integers and float32";
    }
  }

  void set_bytes(Kernel kernel, size_t i, const void* data, size_t bytes) const {
    Int status = Api::get().SetKernelArg(kernel, static_cast<Uint>(i), bytes, data);
    if (status != kSuccess) {
      check(status, ("argument " + std::to_string(i) + " of kernel " + name_).c_str());
    }
  }

  std::string name_;
  KernelInfo info_;
  int dimensions_ = 1;
  std::mutex mutex_;
  std::map<int, Kernel> kernels_;  // the built kernel of each device index
};

// All kernels of a compiled library.
class Library {
 public:
  static constexpr char kKind[] = "opencl";

  explicit Library(std::string bytes) : bytes_(std::move(bytes)) {
    for (auto& [name, info] : read_kernels(bytes_)) kernels_.try_emplace(name, name, info);
  }

  const std::string& bytes() const { return bytes_; }
  bool has(const std::string& name) const { return kernels_.count(name) != 0; }
  void launch(const std::string& name, ffi::PackedArgs args) { kernels_.at(name).launch(args); }

  std::string source() const {
    std::string all;
    for (const auto& [name, kernel] : kernels_) all += "// " + name + kernel.source();
    return all;
  }

 private:
  std::string bytes_;
  std::map<std::string, LaunchedKernel> kernels_;
};

class OpenClModule final : public backends::KernelModule<Library> {
 public:
  using KernelModule::KernelModule;

  ffi::String InspectSource(const ffi::String&) const override { return library().source(); }
};

}  // namespace

ffi::Module load_module(const ffi::Bytes& bytes) {
  return backends::module_of<OpenClModule>(bytes);
}

}  // namespace wherry::opencl
