// Step copies by NVIDIA's driver.
#ifndef WHERRY_ENGINE_MODEL_CUDA_CUDA_COPIES_H_
#define WHERRY_ENGINE_MODEL_CUDA_CUDA_COPIES_H_

#include <memory>

#include "model/cuda/cuda_driver.h"
#include "model/step_copies.h"

namespace wherry {

// They go to the stream that the run time launches this thread's kernels on. The driver outlives
// them. Throws as open_step_copies.
std::unique_ptr<StepCopies> open_cuda_copies(const CudaDriver& driver, DLDevice device,
                                             const CopySizes& sizes);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_CUDA_CUDA_COPIES_H_
