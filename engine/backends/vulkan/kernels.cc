#include "backends/vulkan/kernels.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <utility>

namespace wherry::vulkan {

namespace {

constexpr char kFormat[] = "wherry-spirv-2";
constexpr size_t kExtras = 5;
constexpr uint32_t kSpirvMagic = 0x07230203;

void check(const std::string& name, const KernelInfo& info) {
  uint32_t magic = 0;
  if (info.spirv.size() >= sizeof magic) std::memcpy(&magic, info.spirv.data(), sizeof magic);
  if (magic != kSpirvMagic || info.spirv.size() % 4 != 0) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " is not SPIR-V";
  }
  if (info.call.extras.size() != kExtras) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " has " << info.call.extras.size()
                              << " numbers; " << kExtras << " are read";
  }
  if (info.call.written.size() != info.tensors()) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " takes " << info.tensors()
                              << " tensors and says of " << info.call.written.size()
                              << " whether it writes them";
  }
}

}  // namespace

uint32_t KernelInfo::tensors() const {
  return static_cast<uint32_t>(
      std::count_if(call.arguments.begin(), call.arguments.end(),
                    [](const DLDataType& type) { return type.code == kDLOpaqueHandle; }));
}

// String format, u64 count, count * (string name, call with extras (bytes of shared memory, whether
// buffers hold halves, threads of a block along x, y, z), string SPIR-V). Written by
// targets/spirv.py.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob) {
  backends::BlobReader reader(blob, "the Vulkan part of the library");
  std::string format = reader.text();
  if (format != kFormat) {
    TVM_FFI_THROW(ValueError) << "the Vulkan part of the library has format \"" << format
                              << "\"; \"" << kFormat << "\" is supported";
  }
  std::map<std::string, KernelInfo> kernels;
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    std::string name = reader.text();
    KernelInfo info;
    info.call = backends::read_call(reader);
    info.spirv = reader.text();
    check(name, info);
    info.shared_memory = static_cast<uint32_t>(info.call.extras[0]);
    info.half = info.call.extras[1] != 0;
    for (size_t i = 0; i < 3; ++i) info.threads[i] = static_cast<uint32_t>(info.call.extras[2 + i]);
    kernels[name] = std::move(info);
  }
  return kernels;
}

}  // namespace wherry::vulkan
