// Empty ranges in place of NVIDIA's profiler, which a browser lacks; TVM's wheel does not contain
// this header.
#ifndef TVM_SUPPORT_CUDA_NVTX_H_
#define TVM_SUPPORT_CUDA_NVTX_H_

#include <string>

namespace tvm::support {

struct NVTXScopedRange {
  explicit NVTXScopedRange(const std::string&) {}
};

}  // namespace tvm::support

#endif  // TVM_SUPPORT_CUDA_NVTX_H_
