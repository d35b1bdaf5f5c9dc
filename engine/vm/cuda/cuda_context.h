// Sets the current CUDA context for calls of NVIDIA's driver.
#ifndef WHERRY_ENGINE_VM_CUDA_CUDA_CONTEXT_H_
#define WHERRY_ENGINE_VM_CUDA_CUDA_CONTEXT_H_

#include "vm/cuda/cuda_driver.h"

namespace wherry {

// Makes the device's CUDA context current in this thread for the object's lifetime, so that any
// thread may launch, read or free steps.
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

#endif  // WHERRY_ENGINE_VM_CUDA_CUDA_CONTEXT_H_
