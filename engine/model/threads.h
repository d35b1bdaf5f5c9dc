// How many threads a compiled model should use here, and telling TVM's pool.
#ifndef WHERRY_ENGINE_MODEL_THREADS_H_
#define WHERRY_ENGINE_MODEL_THREADS_H_

#include <string>

namespace wherry {

// Physical cores among those that this process may run on, at most what the cgroup's quota
// allows (whole cores, at least 1). More would make TVM's spinning pool wait for itself.
int default_threads();

// Cores that "cpu.max" allows ("150000 100000" is 1.5), or 0 if it sets no limit or is unreadable.
double quota_of_cpu_max(const std::string& text);

// TVM keeps one thread pool per calling thread: every thread that runs kernels calls this first.
// Cheap when nothing changed. Does nothing where the program has no TVM thread pool.
void configure_kernel_threads(int threads);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_THREADS_H_
