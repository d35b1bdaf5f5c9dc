// Runs independent checks on several threads.
#ifndef WHERRY_ENGINE_SUPPORT_PARALLEL_H_
#define WHERRY_ENGINE_SUPPORT_PARALLEL_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace wherry {

// Returns the i in 0 .. n - 1 for which `holds(i)` is false, in ascending order. Up to `threads`
// threads, the calling one among them, run `holds`, which must not throw.
std::vector<size_t> failing(size_t n, int threads, const std::function<bool(size_t)>& holds);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_PARALLEL_H_
