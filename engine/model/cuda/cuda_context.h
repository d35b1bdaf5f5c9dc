// The context that calls of NVIDIA's driver are for.
#ifndef WHERRY_ENGINE_MODEL_CUDA_CUDA_CONTEXT_H_
#define WHERRY_ENGINE_MODEL_CUDA_CUDA_CONTEXT_H_

#include "model/cuda/cuda_driver.h"

namespace wherry {

// The device's context is this thread's while this lives; steps are launched, read and freed by
// any.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, void* context) : driver_(driver) {
    pushed_ = driver_.push_context(context) == 0;
  }
  ~CurrentContext() {
    void* popped = nullptr;
    if (pushed_) driver_.pop_context(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaDriver& driver_;
  bool pushed_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_CUDA_CUDA_CONTEXT_H_
