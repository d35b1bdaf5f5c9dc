// Independent checks on several threads.
#ifndef WHERRY_ENGINE_SUPPORT_PARALLEL_H_
#define WHERRY_ENGINE_SUPPORT_PARALLEL_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace wherry {

// The numbers of 0 .. n - 1 for which `holds` is false, ascending. `holds` is called on up to
// `threads` threads, this one among them, and must not throw.
std::vector<size_t> failing(size_t n, int threads, const std::function<bool(size_t)>& holds);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_PARALLEL_H_
