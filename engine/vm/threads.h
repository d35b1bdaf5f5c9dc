// Chooses the number of threads for a compiled model, and configures those that run its kernels.
#ifndef WHERRY_ENGINE_VM_THREADS_H_
#define WHERRY_ENGINE_VM_THREADS_H_

#include <string>
#include <vector>

namespace wherry {

// Returns the number of large physical cores that this process may run on, limited by the cgroup's
// quota (whole cores, at least 1). More threads would wait for each other.
int default_threads();

// Returns how many cores have at least half the capacity of the largest one, by Linux's measure of
// a core's speed (1024: the fastest; 0: unknown, as on most machines with equal cores).
int large_cores(const std::vector<int>& capacities);

// Returns the cores that the text of "cpu.max" allows ("150000 100000" is 1.5), or 0 if it sets no
// limit or is unreadable.
double quota_of_cpu_max(const std::string& text);

// Makes libraries that are opened from now on run their kernels' tasks on our threads.
void take_kernel_launches();

// Sets how many threads run the kernels that the calling thread launches (kernel_threads.h; in
// browsers web/core/threads.h), within the limit of support/thread_limit.h. Call it before
// launching kernels; it is cheap if nothing changed.
void configure_kernel_threads(int threads);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_THREADS_H_
