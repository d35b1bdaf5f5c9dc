// What TVM writes into a library for OpenCL: sources, and how each kernel is called.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_

#include <dlpack/dlpack.h>

#include <map>
#include <string>
#include <vector>

namespace wherry::opencl {

// How a kernel is called.
struct KernelInfo {
  std::vector<DLDataType> arguments;  // of the kernel itself
  std::vector<int> axes;              // of the extents after them: 0-2 blockIdx, 3-5 threadIdx
  std::string source;                 // this kernel alone, without prototypes
};

// Kernels of a blob, by name. Throws a ValueError of tvm-ffi if it is cut or of another kind.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob);

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_SOURCE_H_
