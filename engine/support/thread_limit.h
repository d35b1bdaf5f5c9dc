// How many threads may run kernels at the moment, for programs that a hot device asks to do less.
#ifndef WHERRY_ENGINE_SUPPORT_THREAD_LIMIT_H_
#define WHERRY_ENGINE_SUPPORT_THREAD_LIMIT_H_

#include <algorithm>
#include <atomic>

namespace wherry {

// The limit of this process; 0: there is none.
inline std::atomic<int>& thread_limit() {
  static std::atomic<int> most{0};
  return most;
}

// Returns the number of threads within the limit, at least 1.
inline int limited_threads(int threads) {
  const int most = thread_limit().load(std::memory_order_relaxed);
  return most > 0 ? std::max(1, std::min(threads, most)) : threads;
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_THREAD_LIMIT_H_
