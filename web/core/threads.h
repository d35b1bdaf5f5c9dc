// Threads of a page's kernels. The core itself runs on one thread; others, which the script starts
// in workers, each with an instance of its own over the same memory, take tasks of what it
// launches.
#ifndef WHERRY_WEB_CORE_THREADS_H_
#define WHERRY_WEB_CORE_THREADS_H_

namespace wherry::page {

// How many threads later launches are cut for, the caller's included.
void use_threads(int threads);

// Held around what a task does with memory that others may use, too: the C library has no locks.
// On a page's own thread nothing may wait, and nothing ever does: there it is alone.
class MemoryLock {
 public:
  MemoryLock();
  ~MemoryLock();
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;
};

}  // namespace wherry::page

#endif  // WHERRY_WEB_CORE_THREADS_H_
