// The threads of kernels on a CPU, in place of TVM's pool. What TVM's compiled code calls where a
// loop is parallel comes here.
//
// TVM's workers look for work 10000 times (300000 by default) before they sleep, yield after each
// look, and are not to be stopped in between. Where other processes want the core, every yield
// costs a slice of theirs: minutes to close an engine. And who has a task there is fixed: what one
// thread, which does not run at the moment, has not begun, all wait for.
#ifndef WHERRY_ENGINE_MODEL_KERNEL_THREADS_H_
#define WHERRY_ENGINE_MODEL_KERNEL_THREADS_H_

#include <tvm/ffi/error.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace wherry {

// As TVM's c_backend_api.h has it: what a task is told of the launch that it is a part of.
struct KernelGroup {
  void* barrier;  // none: no kernel of ours waits for another task
  int32_t tasks;
};
// Part `task` of `group->tasks`. Not 0: an error, left in this thread as tvm-ffi's functions do.
using KernelTask = int (*)(int task, KernelGroup* group, void* closure);

// Threads that wait for launches of one other, which takes part in each.
class KernelThreads {
 public:
  // `threads`: with the caller's, at least 1.
  explicit KernelThreads(int threads);
  // At once, whatever the threads do between launches.
  ~KernelThreads();
  KernelThreads(const KernelThreads&) = delete;
  KernelThreads& operator=(const KernelThreads&) = delete;

  int size() const { return static_cast<int>(offers_.size()); }

  // Runs size() tasks, each once, and comes back after the last. A thread begins with the task of
  // its number, whose data may be near it, and goes on with what nobody has begun. -1: one of them
  // gave an error, which is this thread's now.
  int launch(KernelTask task, void* closure);

 private:
  // State of a task: 2 * launch while it may be taken, then 2 * launch + 1. Who takes one knows
  // that the launch waits for it, so that `task_` and `closure_` are that launch's.
  struct Offer {
    std::atomic<uint64_t> state{0};
    char apart[64 - sizeof(uint64_t)];  // no two in one line of the cache
  };

  void serve(int own);
  bool await(uint64_t& launch);
  void work(uint64_t launch, int own);
  bool take(uint64_t launch, int task);
  void run(int task);
  void finish();
  void announce();
  void end();

  std::vector<Offer> offers_;
  KernelTask task_ = nullptr;
  void* closure_ = nullptr;
  std::atomic<bool> failed_{false};
  std::optional<tvm::ffi::Error> error_;  // of the task that set `failed_`

  // What idle threads look at lies apart from what busy ones write.
  char before_[64];
  std::atomic<uint64_t> launch_{0};  // the number of the last
  std::atomic<bool> ended_{false};
  char behind_[64];
  std::atomic<int> unfinished_{0};    // tasks
  std::atomic<int> sleeping_{0};      // threads
  std::atomic<bool> waiting_{false};  // who has launched sleeps

  std::mutex mutex_;  // held to sleep and to wake
  std::condition_variable launched_, finished_;
  std::vector<std::thread> threads_;
};

// What compiled code calls, with the threads of configure_kernel_threads (threads.h). Where that
// was not called, TVM's own pool, if there is one. How many tasks a launch asks for does not
// matter: kernels take any number.
int launch_kernel(KernelTask task, void* closure, int tasks);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_KERNEL_THREADS_H_
