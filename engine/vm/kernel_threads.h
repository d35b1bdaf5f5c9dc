// The threads that run CPU kernels in place of TVM's thread pool. TVM's compiled code calls
// launch_kernel for each parallel loop.
//
// TVM's workers poll 10000 times (300000 by default) before they sleep, yield after each
// poll, and cannot be interrupted. If other processes are busy, each yield costs a time slice,
// so closing an engine took minutes. TVM also assigns tasks statically: if one worker is
// descheduled, all threads wait for its task. Here any thread takes a task that has not
// started.
#ifndef WHERRY_ENGINE_VM_KERNEL_THREADS_H_
#define WHERRY_ENGINE_VM_KERNEL_THREADS_H_

#include <tvm/ffi/error.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace wherry {

// Describes a launch to its tasks; the same layout as TVMParallelGroupEnv of TVM's c_backend_api.h.
struct KernelGroup {
  void* barrier;  // always null: none of our kernels has a barrier
  int32_t tasks;
};
// Runs part `task` of `group->tasks`. Returns nonzero for an error, which it stores for this thread
// as tvm-ffi does.
using KernelTask = int (*)(int task, KernelGroup* group, void* closure);

// Worker threads for the launches of one calling thread, which also runs tasks.
class KernelThreads {
 public:
  // threads: their number including the caller, at least 1.
  explicit KernelThreads(int threads);
  // Ends the worker threads at once, even while they poll for a launch.
  ~KernelThreads();
  KernelThreads(const KernelThreads&) = delete;
  KernelThreads& operator=(const KernelThreads&) = delete;

  int size() const { return static_cast<int>(slots_.size()); }

#if defined(_WIN32)
  // Ends the worker threads without waiting for them, for a thread that itself ends. The object, of
  // about a kilobyte, stays, because they still read it.
  void abandon();
#endif

  // Runs size() tasks, each once, and returns after the last one. A thread first runs the task of
  // its own number, whose data may be in its L1 and L2, then tasks that no thread has started.
  // Returns -1 if a task failed, and moves its error to the calling thread.
  int launch(KernelTask task, void* closure);

 private:
  // The state of a task: 2 * launch while it is free, then 2 * launch + 1. The launch waits for
  // each taken task, so `task_` and `closure_` belong to that launch while a thread runs the task.
  struct TaskSlot {
    std::atomic<uint64_t> state{0};
    char apart[64 - sizeof(uint64_t)];  // pads each slot to one cache line
  };

  void serve(int own);
  bool await(uint64_t& launch);
  void work(uint64_t launch, int own);
  bool take(uint64_t launch, int task);
  void run(int task);
  void finish();
  void announce();
  void end();

  std::vector<TaskSlot> slots_;
  KernelTask task_ = nullptr;
  void* closure_ = nullptr;
  std::atomic<bool> failed_{false};
  std::optional<tvm::ffi::Error> error_;  // error of the task that set `failed_`

  // Padding separates the fields that idle threads poll from the fields that busy threads write.
  char before_[64];
  std::atomic<uint64_t> launch_{0};  // number of the last launch
  std::atomic<bool> ended_{false};
  char behind_[64];
  std::atomic<int> unfinished_{0};    // number of unfinished tasks
  std::atomic<int> sleeping_{0};      // number of sleeping threads
  std::atomic<bool> waiting_{false};  // true while the launching thread sleeps

  std::mutex mutex_;  // locked while a thread falls asleep or is woken
  std::condition_variable launched_, finished_;
  std::vector<std::thread> threads_;
};

// Runs the tasks of a parallel loop; compiled code calls it. It uses the threads of
// configure_kernel_threads (threads.h), or TVM's own pool, if there is one, in threads that did not
// call that function. The number of tasks that a launch requests is ignored: kernels accept any
// number.
int launch_kernel(KernelTask task, void* closure, int tasks);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_KERNEL_THREADS_H_
