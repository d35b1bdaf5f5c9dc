// This is the only file that is compiled with instructions for shared memory. All others are
// compiled for a single thread, which is correct: other threads run only the tasks of kernels, and
// these share nothing except the data that is guarded in this file. So the same object serves pages
// with and without threads at the same speed.
#include "threads.h"

#include <tvm/runtime/c_backend_api.h>

#include <algorithm>
#include <cstdint>

#include "wherry.h"

namespace wherry::page {
namespace {

// Number of tasks in a launch for each thread: if one thread is delayed, the others find more tasks
// to take.
constexpr int kTasksPerThread = 4;
// Number of times that a thread reads a word before it sleeps until the word changes. That takes
// about 30 us: as long as the core takes between two launches, and less than falling asleep and
// waking up.
constexpr int kLooks = 30'000;

constexpr int32_t kTask = 1, kDied = 2;

// The state that all threads share. The script knows the offsets of the first fields:
// web/src/core/threads.ts.
struct Pool {
  int32_t untaken = 0;     // number of tasks that no thread has taken; threads sleep while it is 0
  int32_t unfinished = 0;  // number of tasks that have not ended; the launch waits until it is 0
  int32_t failed = 0;      // kTask if a task has failed; kDied if a thread has died
  char reason[256] = "";   // message of a thread that has died
  int32_t sleeping = 0;    // number of sleeping threads
  FTVMParallelLambda task = nullptr;
  void* closure = nullptr;
  int32_t tasks = 0;
};

constexpr int64_t kMillisecond = 1'000'000;  // nanoseconds in a millisecond

Pool pool;
int threads = 1;
int32_t memory_held = 0;

int32_t get(const int32_t& word) { return __atomic_load_n(&word, __ATOMIC_SEQ_CST); }
void set(int32_t& word, int32_t value) { __atomic_store_n(&word, value, __ATOMIC_SEQ_CST); }
int32_t add(int32_t& word, int32_t value) {
  return __atomic_add_fetch(&word, value, __ATOMIC_SEQ_CST);
}
void sleep_while(int32_t& word, int32_t value, int64_t most = -1) {
  __builtin_wasm_memory_atomic_wait32(&word, value, most);
}
void wake(int32_t& word, int32_t sleepers) {
  __builtin_wasm_memory_atomic_notify(&word, static_cast<uint32_t>(sleepers));
}

// Takes a task that no other thread has taken, and returns its number; -1 if none is left.
int take() {
  int32_t left = get(pool.untaken);
  while (left > 0) {
    if (__atomic_compare_exchange_n(&pool.untaken, &left, left - 1, /*weak=*/true, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return left - 1;
    }
  }
  return -1;
}

// Runs the task of this number; `pool` names its launch, which cannot end before the task.
void run(int number) {
  TVMParallelGroupEnv group{nullptr, pool.tasks};
  if (pool.task(number, &group, pool.closure) == 0) return;
  int32_t none = 0;  // the exchange fails if a thread has died, so that kDied stays
  __atomic_compare_exchange_n(&pool.failed, &none, kTask, /*weak=*/false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
}

// A launch of a kernel. Its destructor waits until all tasks are over, even after an exception,
// because the closure lies on the caller's stack.
class Launch {
 public:
  Launch(FTVMParallelLambda task, void* closure) {
    pool.task = task;
    pool.closure = closure;
    pool.tasks = threads * kTasksPerThread;
    if (get(pool.failed) != kDied) set(pool.failed, 0);
    set(pool.unfinished, pool.tasks);
    set(pool.untaken, pool.tasks);
    if (get(pool.sleeping) > 0) wake(pool.untaken, threads - 1);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // Lets the calling thread take part in the launch.
  void work() {
    for (int number = take(); number >= 0; number = take()) {
      inside_ = true;
      run(number);
      inside_ = false;
      add(pool.unfinished, -1);
    }
  }

  ~Launch() {
    if (inside_) {  // an exception was thrown: the remaining tasks are skipped
      int32_t undone = 1;
      while (take() >= 0) ++undone;
      add(pool.unfinished, -undone);
    }
    for (int look = 0; look < kLooks; ++look) {
      if (get(pool.unfinished) == 0) return;
    }
    while (const int32_t unfinished = get(pool.unfinished)) {
      sleep_while(pool.unfinished, unfinished);
    }
  }

 private:
  bool inside_ = false;
};

}  // namespace

void use_threads(int count) { threads = std::max(count, 1); }

MemoryLock::MemoryLock() {
  for (int look = 1; __atomic_exchange_n(&memory_held, 1, __ATOMIC_SEQ_CST) != 0; ++look) {
    if (look % kLooks == 0)
      // the thread that holds the lock may be descheduled
      sleep_while(memory_held, 1, kMillisecond);
  }
}

MemoryLock::~MemoryLock() { set(memory_held, 0); }

extern "C" {

int TVMBackendParallelLaunch(FTVMParallelLambda task, void* closure, int) {
  if (threads == 1) {
    TVMParallelGroupEnv alone{nullptr, 1};
    return task(0, &alone, closure);
  }
  Launch(task, closure).work();
  if (get(pool.failed) == kDied) TVMFFIErrorSetRaisedFromCStr("InternalError", pool.reason);
  return get(pool.failed) == 0 ? 0 : -1;
}

// Runs tasks for ever, in a worker's instance that has its own stack; never returns.
WHERRY_API void wherry_page_thread(void) {
  for (;;) {
    const int number = take();
    if (number >= 0) {
      run(number);
      if (add(pool.unfinished, -1) == 0) wake(pool.unfinished, 1);
      continue;
    }
    int look = 0;
    while (look < kLooks && get(pool.untaken) == 0) ++look;
    if (look < kLooks) continue;
    add(pool.sleeping, 1);
    sleep_while(pool.untaken, 0);
    add(pool.sleeping, -1);
  }
}

// Returns the address at which the script writes why a thread died.
WHERRY_API void* wherry_page_pool(void) { return &pool; }

}  // extern "C"

}  // namespace wherry::page
