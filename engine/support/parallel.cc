#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

namespace wherry {

std::vector<size_t> failing(size_t n, int threads, const std::function<bool(size_t)>& holds) {
  std::vector<char> failed(n);  // not vector<bool>, whose neighbours share a byte
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < n; i = next++) failed[i] = !holds(i);
  };
  constexpr size_t kMost = 8;  // more threads than this do not read memory faster
  const size_t others = std::min({static_cast<size_t>(std::max(threads, 1)), n, kMost});
  std::vector<std::thread> pool;
  try {
    for (size_t i = 1; i < others; ++i) pool.emplace_back(work);
  } catch (const std::system_error&) {
    // The operating system starts no more threads, so fewer threads check.
  }
  work();
  for (std::thread& thread : pool) thread.join();
  std::vector<size_t> result;
  for (size_t i = 0; i < n; ++i) {
    if (failed[i]) result.push_back(i);
  }
  return result;
}

}  // namespace wherry
