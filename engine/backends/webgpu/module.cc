#include "backends/webgpu/module.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/blob.h"
#include "backends/library.h"
#include "backends/webgpu/device.h"
#include "backends/webgpu/imports.h"

namespace wherry::webgpu {

namespace {

namespace ffi = tvm::ffi;

// Upper bound on workgroups along an axis; every WebGPU implementation allows as many.
constexpr int64_t kMostGroups = 65535;

struct Kernel {
  backends::KernelCall call;
  std::string wgsl;
  uint32_t handle = 0;  // handle of the page's kernel; 0 before it is created
};

// Converts a number to a 32-bit word of the kernel's uniform.
uint32_t word_of(const std::string& kernel, DLDataType type, ffi::AnyView value) {
  uint32_t word = 0;
  if (type.code == kDLFloat && type.bits == 32) {
    auto number = static_cast<float>(value.cast<double>());
    std::memcpy(&word, &number, sizeof word);
    return word;
  }
  auto number = value.cast<int64_t>();
  const bool is_signed = type.code == kDLInt;
  const int64_t least = is_signed ? std::numeric_limits<int32_t>::min() : 0;
  const int64_t most = is_signed ? int64_t{std::numeric_limits<int32_t>::max()}
                                 : int64_t{std::numeric_limits<uint32_t>::max()};
  if (number < least || number > most) {
    TVM_FFI_THROW(ValueError) << "kernel " << kernel << ": " << number
                              << " does not fit the 32 bits of its argument";
  }
  return static_cast<uint32_t>(number);
}

// Reads the kernels of a blob by name; module.h describes the format.
std::map<std::string, Kernel> read_kernels(const std::string& blob) {
  backends::BlobReader reader(blob, "the WebGPU part of the library");
  std::map<std::string, Kernel> kernels;
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    std::string name = reader.text();
    reader.text();  // skips the name, which the blob repeats
    kernels[name].call = backends::read_call(reader);
  }
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    std::string name = reader.text();
    kernels[name].wgsl = reader.text();
  }
  return kernels;
}

class Library {
 public:
  // The page starts to build all pipelines while weights load, because nearly all kernels are
  // needed.
  explicit Library(const std::string& bytes) : bytes_(bytes), kernels_(read_kernels(bytes)) {
    for (auto& [name, kernel] : kernels_) define(name, kernel);
  }

  const std::string& bytes() const { return bytes_; }
  bool has(const std::string& name) const { return kernels_.count(name) != 0; }

  // Launches the kernel `name`. args: the kernel's arguments, then an extent for each of its axes.
  void launch(const std::string& name, ffi::PackedArgs args) {
    Kernel& kernel = kernels_.at(name);
    auto extents = kernel.call.extents(name, args);
    for (int64_t extent : extents) {
      if (extent <= 0) return;  // an empty launch computes nothing
    }
    buffers_.clear();
    words_.clear();
    for (size_t i = 0; i < kernel.call.arguments.size(); ++i) {
      DLDataType type = kernel.call.arguments[i];
      ffi::AnyView value = args[static_cast<int>(i)];
      if (type.code == kDLOpaqueHandle) {
        buffers_.push_back(handle_of(value.cast<void*>()));
      } else {
        words_.push_back(word_of(name, type, value));
      }
    }
    words_.push_back(static_cast<uint32_t>(extents[0] - 1));
    // TVM's kernels split a long first axis into x and z, where z counts multiples of kMostGroups.
    const int64_t turns = (extents[0] - 1) / kMostGroups + 1;
    if (turns > kMostGroups || extents[1] > kMostGroups || extents[2] != 1) {
      TVM_FFI_THROW(ValueError) << "kernel " << name << " wants a grid of " << extents[0] << " x "
                                << extents[1] << " x " << extents[2] << "; WebGPU allows "
                                << kMostGroups << " along the second axis, and none along the "
                                << "third. Take a smaller prefill_chunk";
    }
    const int64_t along_x = (extents[0] + turns - 1) / turns;
    wherry_gpu_launch(kernel.handle, buffers_.data(), buffers_.size(), words_.data(), words_.size(),
                      static_cast<uint32_t>(along_x), static_cast<uint32_t>(extents[1]),
                      static_cast<uint32_t>(turns));
  }

 private:
  static void define(const std::string& name, Kernel& kernel) {
    std::vector<uint8_t> written(kernel.call.written.begin(), kernel.call.written.end());
    kernel.handle = wherry_gpu_kernel(name.data(), name.size(), kernel.wgsl.data(),
                                      kernel.wgsl.size(), written.data(), written.size());
  }

  std::string bytes_;
  std::map<std::string, Kernel> kernels_;
  // Arguments of a launch; members, so that launches reuse their memory.
  std::vector<uint32_t> buffers_, words_;
};

using Functions = backends::LibraryFunctions<Library>;

class WebGpuModule final : public ffi::ModuleObj {
 public:
  explicit WebGpuModule(const std::string& bytes) {
    std::tie(functions_, library_) = Functions::open(bytes);
  }

  const char* kind() const override { return "webgpu"; }
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
  return ffi::Module(ffi::make_object<WebGpuModule>(std::string(bytes.data(), bytes.size())));
}

}  // namespace wherry::webgpu
