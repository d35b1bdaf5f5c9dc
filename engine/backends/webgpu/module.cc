#include "backends/webgpu/module.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/blob.h"
#include "backends/library.h"
#include "backends/webgpu/device.h"
#include "backends/webgpu/imports.h"

namespace wherry::webgpu {

namespace {

namespace ffi = tvm::ffi;

// Upper bounds on workgroups along each axis; every WebGPU implementation allows as many.
constexpr std::array<uint32_t, 3> kMostGroups = {65535, 65535, 65535};

struct Kernel {
  backends::KernelCall call;
  std::string wgsl;
  uint32_t handle = 0;  // handle of the page's kernel; 0 before it is created
};

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
  static constexpr char kKind[] = "webgpu";

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
        words_.push_back(backends::word_of(name, type, value));
      }
    }
    words_.push_back(static_cast<uint32_t>(extents[0] - 1));
    const auto grid = backends::grid_of(name, extents, kMostGroups);
    wherry_gpu_launch(kernel.handle, buffers_.data(), buffers_.size(), words_.data(), words_.size(),
                      grid[0], grid[1], grid[2]);
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

}  // namespace

ffi::Module load_module(const ffi::Bytes& bytes) {
  return backends::module_of<backends::KernelModule<Library>>(bytes);
}

}  // namespace wherry::webgpu
