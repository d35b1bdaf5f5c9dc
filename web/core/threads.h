// Threads for the kernels in a page. The core itself runs on one thread. The script starts other
// threads in workers, each with its own instance over the same memory; they take tasks of the
// kernels that the core launches.
#ifndef WHERRY_WEB_CORE_THREADS_H_
#define WHERRY_WEB_CORE_THREADS_H_

namespace wherry::page {

// Sets the number of threads, including the caller's, for which later launches are split.
void use_threads(int threads);

// Locks the memory allocator while a task allocates or frees memory, because the C library has no
// locks. A page's main thread must not wait, and never does: it runs without other threads.
class MemoryLock {
 public:
  MemoryLock();
  ~MemoryLock();
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;
};

}  // namespace wherry::page

#endif  // WHERRY_WEB_CORE_THREADS_H_
