// How many threads a compiled model should use here, and who runs its kernels.
#ifndef WHERRY_ENGINE_MODEL_THREADS_H_
#define WHERRY_ENGINE_MODEL_THREADS_H_

#include <string>

namespace wherry {

// Physical cores among those that this process may run on, at most what the cgroup's quota
// allows (whole cores, at least 1). More would wait for each other.
int default_threads();

// Cores that "cpu.max" allows ("150000 100000" is 1.5), or 0 if it sets no limit or is unreadable.
double quota_of_cpu_max(const std::string& text);

// Libraries that are opened from now on have their kernels' tasks run by threads of ours.
void take_kernel_launches();

// How many threads (kernel_threads.h; in pages web/core/threads.h) run the kernels that this thread
// calls: whoever runs kernels says so first. Cheap when nothing changed.
void configure_kernel_threads(int threads);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_THREADS_H_
