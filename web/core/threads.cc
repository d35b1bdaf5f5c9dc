// Runs kernels' tasks on a page's threads. This is the one file with instructions for shared
// memory. All others are compiled for one thread, which is safe: other threads run only kernels'
// tasks, and those share only memory that is guarded here. So the same object file serves pages
// with threads and without, at the same speed.
#include "threads.h"

#include <tvm/runtime/c_backend_api.h>

#include <algorithm>
#include <cstdint>

#include "wherry.h"

namespace wherry::page {
namespace {

// Tasks of a launch for each thread: if one thread is delayed, the others take over its tasks.
constexpr int kTasksPerThread = 4;
// How often a thread polls a word before it sleeps until the word changes, about 30 us: as long as
// the core takes between two launches, and less than falling asleep and waking.
constexpr int kLooks = 30'000;

constexpr int32_t kTask = 1, kDied = 2;

// What the threads share. The script reads the first fields: web/src/core/threads.ts.
struct Pool {
  int32_t untaken = 0;     // tasks that no thread has taken; threads sleep while there are none
  int32_t unfinished = 0;  // tasks that have not ended; the launch waits for them
  int32_t failed = 0;      // kTask if a task failed; kDied if a thread died
  char reason[256] = "";   // reason why a thread died
  int32_t sleeping = 0;    // number of sleeping threads
  FTVMParallelLambda task = nullptr;
  void* closure = nullptr;
  int32_t tasks = 0;
};

constexpr int64_t kMillisecond = 1'000'000;  // nanoseconds

Pool pool;
int threads = 1;
int32_t memory_locked = 0;

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

// Takes a task for the calling thread and returns its number; -1 if there is none.
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

// Runs the task of this number of the current launch, which lasts at least until the task has
// ended.
void run(int number) {
  TVMParallelGroupEnv group{nullptr, pool.tasks};
  if (pool.task(number, &group, pool.closure) == 0) return;
  int32_t none = 0;  // the error of a thread that died is kept
  __atomic_compare_exchange_n(&pool.failed, &none, kTask, /*weak=*/false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
}

// A launch of tasks. Its destructor waits until all tasks have ended, also after an exception,
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

  // Runs tasks in the calling thread until none is left.
  void work() {
    for (int number = take(); number >= 0; number = take()) {
      inside_ = true;
      run(number);
      inside_ = false;
      add(pool.unfinished, -1);
    }
  }

  ~Launch() {
    if (inside_) {  // after an exception, the remaining tasks are skipped
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
  for (int look = 1; __atomic_exchange_n(&memory_locked, 1, __ATOMIC_SEQ_CST) != 0; ++look) {
    if (look % kLooks == 0)
      sleep_while(memory_locked, 1, kMillisecond);  // the thread that holds the lock is descheduled
  }
}

MemoryLock::~MemoryLock() { set(memory_locked, 0); }

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

// Runs tasks forever: the main function of a thread in a worker's instance, which has its own
// stack. Never returns.
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

// Returns the address of the shared fields, where the script writes why a thread died.
WHERRY_API void* wherry_page_pool(void) { return &pool; }

}  // extern "C"

}  // namespace wherry::page
