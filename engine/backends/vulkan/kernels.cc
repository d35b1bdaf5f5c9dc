#include "backends/vulkan/kernels.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <utility>

namespace wherry::vulkan {

namespace {

constexpr char kFormat[] = "wherry-spirv-2";
constexpr size_t kExtras = 5, kOfEdition = 5;  // numbers per kernel; numbers per edition
constexpr uint32_t kSpirvMagic = 0x07230203;

void check_kernel(const std::string& name, const KernelInfo& info) {
  uint32_t magic = 0;
  if (info.spirv.size() >= sizeof magic) std::memcpy(&magic, info.spirv.data(), sizeof magic);
  if (magic != kSpirvMagic || info.spirv.size() % 4 != 0) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " is not SPIR-V";
  }
  size_t numbers = info.call.extras.size();
  if (numbers < kExtras || (numbers - kExtras) % kOfEdition != 0) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " has " << info.call.extras.size()
                              << " numbers; " << kExtras << " are read";
  }
  if (info.call.written.size() != info.tensors()) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " takes " << info.tensors()
                              << " tensors and says of " << info.call.written.size()
                              << " whether it writes them";
  }
}

// Splits a kernel's code into editions. Throws unless the parts are consecutive SPIR-V modules.
std::vector<Edition> editions_of(const std::string& name, const KernelInfo& info) {
  std::vector<Edition> editions;
  const auto& numbers = info.call.extras;
  size_t end = 0;
  for (size_t i = kExtras; i < numbers.size(); i += kOfEdition) {
    auto number = [&](size_t which) { return static_cast<uint32_t>(numbers[i + which]); };
    editions.push_back({number(0), number(1), number(2), number(3), end, number(4)});
    end += editions.back().bytes;
  }
  bool valid = editions.empty() || end == info.spirv.size();
  for (const Edition& edition : editions) {
    uint32_t magic = 0;
    valid = valid && edition.bytes % 4 == 0 && edition.bytes > sizeof magic;
    if (valid) std::memcpy(&magic, info.spirv.data() + edition.begin, sizeof magic);
    valid = valid && magic == kSpirvMagic;
  }
  if (!valid) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " has editions that are not SPIR-V";
  }
  return editions;
}

}  // namespace

uint32_t KernelInfo::tensors() const {
  return static_cast<uint32_t>(
      std::count_if(call.arguments.begin(), call.arguments.end(),
                    [](const DLDataType& type) { return type.code == kDLOpaqueHandle; }));
}

// Parses the format that targets/spirv/generation.py writes: string format, u64 count, count *
// (string name, call with extras (bytes of shared memory, whether buffers hold halves, threads of a
// block along x, y, z, and of each edition m, n, k, lanes, bytes), string SPIR-V).
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
    check_kernel(name, info);
    info.shared_memory = static_cast<uint32_t>(info.call.extras[0]);
    info.half = info.call.extras[1] != 0;
    for (size_t i = 0; i < 3; ++i) info.threads[i] = static_cast<uint32_t>(info.call.extras[2 + i]);
    info.editions = editions_of(name, info);
    kernels[name] = std::move(info);
  }
  return kernels;
}

}  // namespace wherry::vulkan
