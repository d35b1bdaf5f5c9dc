// The one file with instructions for shared memory. All others are compiled as for one thread,
// which is right: of what they do, other threads run only kernels' tasks, and these share nothing
// but what is guarded here. So the same object serves pages with threads and without, at the same
// speed.
#include "threads.h"

#include <tvm/runtime/c_backend_api.h>

#include <algorithm>
#include <cstdint>

#include "wherry.h"

namespace wherry::page {
namespace {

// Of a launch, for each thread: one that was held up leaves the others something to take.
constexpr int kTasksPerThread = 4;
// Looks at a word before sleeping until it changes, about 30 us: as long as the core takes between
// two launches, and less than falling asleep and being woken.
constexpr int kLooks = 30'000;

constexpr int32_t kTask = 1, kDied = 2;

// What the threads share. The script knows the first words: web/src/core/threads.ts.
struct Pool {
  int32_t untaken = 0;     // tasks that no thread has taken; threads sleep while there are none
  int32_t unfinished = 0;  // tasks whose end the launch waits for
  int32_t failed = 0;      // kTask, if one of them has; kDied, if a thread has
  char reason[256] = "";   // of a thread that is no more
  int32_t sleeping = 0;    // threads
  FTVMParallelLambda task = nullptr;
  void* closure = nullptr;
  int32_t tasks = 0;
};

constexpr int64_t kMillisecond = 1'000'000;  // ns

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

// The number of a task, which is the caller's then; -1: there is none.
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

// Runs the launch's task of this number. The launch is not over before that: `pool` says which.
void run(int number) {
  TVMParallelGroupEnv group{nullptr, pool.tasks};
  if (pool.task(number, &group, pool.closure) == 0) return;
  int32_t none = 0;  // what a thread died of stays
  __atomic_compare_exchange_n(&pool.failed, &none, kTask, /*weak=*/false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
}

// A launch, which is not left before its tasks are over, by an exception either: the closure lies
// on the caller's stack.
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

  // Takes a part in it.
  void work() {
    for (int number = take(); number >= 0; number = take()) {
      inside_ = true;
      run(number);
      inside_ = false;
      add(pool.unfinished, -1);
    }
  }

  ~Launch() {
    if (inside_) {  // an exception: the remaining tasks are skipped
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
      sleep_while(memory_held, 1, kMillisecond);  // the thread that holds it is descheduled
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

// A thread's life, in a worker's instance whose stack is its own. Never returns.
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

// Where the script writes why a thread is no more.
WHERRY_API void* wherry_page_pool(void) { return &pool; }

}  // extern "C"

}  // namespace wherry::page
