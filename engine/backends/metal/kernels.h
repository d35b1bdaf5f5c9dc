// Parses the Metal part of a compiled library, as TVM writes it: sources and calling conventions.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_KERNELS_H_
#define WHERRY_ENGINE_BACKENDS_METAL_KERNELS_H_

#include <map>
#include <string>

#include "backends/blob.h"

namespace wherry::metal {

struct KernelInfo {
  backends::KernelCall call;
  std::string source;  // in Metal's language, of this kernel alone

  // Whether the kernel uses functions of SIMD groups, which GPUs have from A14 and M1.
  bool simdgroups() const { return source.find("simd") != std::string::npos; }
};

// Reads a blob's kernels by name. Throws a ValueError of tvm-ffi if the bytes are truncated or not
// such a blob.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_KERNELS_H_
