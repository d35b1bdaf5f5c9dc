// What wherry's compiler writes into a library for Vulkan: SPIR-V, and how each kernel is called.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "backends/blob.h"

namespace wherry::vulkan {

struct KernelInfo {
  backends::KernelCall call;
  std::string spirv;
  uint32_t shared_memory = 0;         // bytes of a block
  bool half = false;                  // loads and stores float16
  std::array<uint32_t, 3> threads{};  // of a block, along x, y, z

  uint32_t tensors() const;
};

// Kernels of a blob, by name. Throws a ValueError of tvm-ffi if it is cut or of another kind.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_KERNELS_H_
