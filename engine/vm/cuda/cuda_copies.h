// Implements StepCopies with NVIDIA's driver.
#ifndef WHERRY_ENGINE_VM_CUDA_CUDA_COPIES_H_
#define WHERRY_ENGINE_VM_CUDA_CUDA_COPIES_H_

#include <memory>

#include "vm/cuda/cuda_driver.h"
#include "vm/step_copies.h"

namespace wherry {

// Opens copies on the stream on which the runtime launches this thread's kernels. The driver must
// outlive the result. Throws as open_step_copies does.
std::unique_ptr<StepCopies> open_cuda_copies(const CudaDriver& driver, DLDevice device,
                                             const CopySizes& sizes);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_CUDA_CUDA_COPIES_H_
