// The threads that run kernels in a page. The core itself runs on one thread; other threads, which
// the script starts in workers, each with its own instance over the same memory, take tasks of the
// core's launches.
#ifndef WHERRY_WEB_CORE_THREADS_H_
#define WHERRY_WEB_CORE_THREADS_H_

namespace wherry::page {

// Sets the number of threads for later launches, including the caller's.
void use_threads(int threads);

// A lock for a task's use of memory that other threads may also use, because the C library has no
// locks. On a page's own thread no call may wait, and none ever does, because that thread is alone.
class MemoryLock {
 public:
  MemoryLock();
  ~MemoryLock();
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;
};

}  // namespace wherry::page

#endif  // WHERRY_WEB_CORE_THREADS_H_
