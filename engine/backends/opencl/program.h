// Builds OpenCL kernels from source, with a cache of binaries on disk.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_PROGRAM_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_PROGRAM_H_

#include <string>

#include "backends/opencl/device.h"

namespace wherry::opencl {

// Builds the kernel `name` of `source`, or loads the cached binary of the same source and device.
// Throws a RuntimeError of tvm-ffi with the compiler's log.
Kernel build_kernel(const OpenClDevice& device, const std::string& name, const std::string& source);

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_PROGRAM_H_
