// What wherry's compiler writes into a library for Vulkan: SPIR-V, and how each kernel is called.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/blob.h"

namespace wherry::vulkan {

// Code for devices that multiply float16 matrices of one shape: c[m, n] += a[m, k] b[k, n].
struct Edition {
  uint32_t m, n, k;
  uint32_t lanes;  // of a subgroup
  size_t begin, bytes;
};

struct KernelInfo {
  backends::KernelCall call;
  std::string spirv;
  std::vector<Edition> editions;      // parts of spirv, the best first; none: it is one code
  uint32_t shared_memory = 0;         // bytes of a block
  bool half = false;                  // loads and stores float16
  std::array<uint32_t, 3> threads{};  // of a block, along x, y, z

  uint32_t tensors() const;
};

// Kernels of a blob, by name. Throws a ValueError of tvm-ffi if it is cut or of another kind.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
