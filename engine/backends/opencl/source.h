// What TVM writes into a library for OpenCL: sources, and how each kernel is called.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_

#include <map>
#include <string>

#include "backends/blob.h"

namespace wherry::opencl {

struct KernelInfo {
  backends::KernelCall call;
  std::string source;  // this kernel alone, without prototypes
};

// Kernels of a blob, by name. Throws a ValueError of tvm-ffi if it is cut or of another kind.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_
