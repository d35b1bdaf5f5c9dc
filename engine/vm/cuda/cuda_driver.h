// The functions of NVIDIA's driver for CUDA graphs and asynchronous copies, found at run
// time.
#ifndef WHERRY_ENGINE_VM_CUDA_CUDA_DRIVER_H_
#define WHERRY_ENGINE_VM_CUDA_CUDA_DRIVER_H_

#if defined(__linux__) && !defined(__ANDROID__)
#define WHERRY_HAS_CUDA 1
#endif

#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry {

// The driver's functions, declared as in cuda.h: handles are pointers, statuses and flags are
// integers, device addresses are 64-bit integers.
struct CudaDriver {
  int (*error_name)(int status, const char** name);
  int (*get_context)(void** context);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*create_stream)(void** stream, unsigned flags);
  int (*destroy_stream)(void* stream);
  int (*begin_capture)(void* stream, int mode);
  int (*end_capture)(void* stream, void** graph);
  int (*instantiate)(void** executable, void* graph, unsigned long long flags);
  int (*destroy_graph)(void* graph);
  int (*launch)(void* executable, void* stream);
  int (*destroy_executable)(void* executable);
  int (*allocate_host)(void** memory, size_t bytes, unsigned flags);
  int (*free_host)(void* memory);
  int (*copy_to_device)(uint64_t to, const void* from, size_t bytes, void* stream);
  int (*copy_to_host)(void* to, uint64_t from, size_t bytes, void* stream);
  int (*create_event)(void** event, unsigned flags);
  int (*destroy_event)(void* event);
  int (*record_event)(void* event, void* stream);
  int (*wait_for_event)(void* event);

  // Throws Error with the status's name unless the status is success. function: the driver function
  // that returned it.
  void check(int status, const char* function) const;
};

// Returns the process's driver; null if there is none. Throws Error with the names of the missing
// functions if it is older than CUDA 12.
const CudaDriver* cuda_driver();

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_CUDA_CUDA_DRIVER_H_
