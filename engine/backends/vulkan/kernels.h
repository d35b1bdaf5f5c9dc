// Parses what wherry's compiler writes for Vulkan: SPIR-V and calling conventions.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/blob.h"

namespace wherry::vulkan {

// Code for devices with cooperative float16 matrices of one shape: c[m, n] += a[m, k] b[k, n].
struct Edition {
  uint32_t m, n, k;
  uint32_t lanes;  // subgroup size
  size_t begin, bytes;
};

struct KernelInfo {
  backends::KernelCall call;
  std::string spirv;
  std::vector<Edition> editions;      // parts of spirv, best first; none: spirv is one module
  uint32_t shared_memory = 0;         // bytes of a block
  bool half = false;                  // loads and stores float16
  std::array<uint32_t, 3> threads{};  // of a block, along x, y, z

  uint32_t tensors() const;
};

// Reads a blob's kernels by name. Throws a ValueError of tvm-ffi if it is truncated or no such
// blob.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
