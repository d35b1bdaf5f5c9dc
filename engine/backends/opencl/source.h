// Parses the OpenCL part of a compiled library, as TVM writes it: sources and calling conventions.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_

#include <map>
#include <string>

#include "backends/blob.h"

namespace wherry::opencl {

struct KernelInfo {
  backends::KernelCall call;
  std::string source;  // source text of this kernel alone, without prototypes
};

// Reads a blob's kernels by name. Throws a ValueError of tvm-ffi if the bytes are truncated or not
// such a blob.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_
