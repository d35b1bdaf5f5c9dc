#ifndef WHERRY_ENGINE_SUPPORT_CLOCK_H_
#define WHERRY_ENGINE_SUPPORT_CLOCK_H_

#include <chrono>

namespace wherry {

// Returns the seconds of a monotonic clock.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_CLOCK_H_
