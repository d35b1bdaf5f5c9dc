// The functions of NVIDIA's driver that record and play graphs, opened by the library's name.
#ifndef WHERRY_ENGINE_MODEL_GRAPHS_CUDA_DRIVER_H_
#define WHERRY_ENGINE_MODEL_GRAPHS_CUDA_DRIVER_H_

#include <string>

namespace wherry {

// As cuda.h declares them: handles are pointers, statuses and flags integers.
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

  // Throws Error with the status' name if it is not success.
  void check(int status, const char* function) const;
};

// The one of this process; null: no driver is here. Throws Error, naming the functions that are
// missing: it is older than CUDA 12.
const CudaDriver* cuda_driver();

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_GRAPHS_CUDA_DRIVER_H_
