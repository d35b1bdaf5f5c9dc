// Compiles several kernels at the same time.
#ifndef WHERRY_ENGINE_BACKENDS_PARALLEL_H_
#define WHERRY_ENGINE_BACKENDS_PARALLEL_H_

#include <cstddef>
#include <functional>

namespace wherry::backends {

// Calls `work` for 0 .. n - 1 in a few threads, the calling one among them. After all calls it
// throws the first exception that one of them threw.
void in_parallel(size_t n, const std::function<void(size_t)>& work);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_PARALLEL_H_
