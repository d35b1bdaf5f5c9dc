#include "backends/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace wherry::backends {

void in_parallel(size_t n, const std::function<void(size_t)>& work) {
  constexpr size_t kMostThreads = 4;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  auto some = [&] {
    for (size_t i = next++; i < n; i = next++) {
      try {
        work(i);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  const size_t count = std::min({kMostThreads, size_t{std::thread::hardware_concurrency()}, n});
  for (size_t i = 1; i < count; ++i) threads.emplace_back(some);
  some();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace wherry::backends
