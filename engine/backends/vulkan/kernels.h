// Parses the Vulkan part of a compiled library, as wherry's compiler writes it: SPIR-V and calling
// conventions.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/blob.h"

namespace wherry::vulkan {

// A variant of a kernel for devices with cooperative float16 matrices of one shape: c[m, n] += a[m,
// k] b[k, n].
struct Edition {
  uint32_t m, n, k;
  uint32_t lanes;  // subgroup size in threads
  size_t begin, bytes;
};

struct KernelInfo {
  backends::KernelCall call;
  std::string spirv;
  // Parts of `spirv`, the best edition first; empty if `spirv` is one module.
  std::vector<Edition> editions;
  uint32_t shared_memory = 0;         // bytes of shared memory per thread block
  bool half = false;                  // true if the kernel loads and stores float16
  std::array<uint32_t, 3> threads{};  // threads of a block along x, y, z

  uint32_t tensors() const;
};

// Reads a blob's kernels by name. Throws a ValueError of tvm-ffi if the bytes are truncated or not
// such a blob.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
