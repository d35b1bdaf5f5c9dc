#include "vm/kernel_threads.h"

#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <system_error>

#include "support/error.h"
#include "support/thread_limit.h"
#include "support/tvm_calls.h"
#include "system/this_thread.h"
#include "vm/threads.h"

#if defined(_WIN32)
extern "C" __declspec(dllimport) unsigned char __stdcall RtlDllShutdownInProgress();  // of ntdll
#endif

namespace wherry {

namespace {

using Clock = std::chrono::steady_clock;

// How long a thread polls for the next launch before it sleeps; longer than the gap between steps.
constexpr std::chrono::microseconds kBetweenSteps{5000};
// How long the caller polls for the end of a launch. After this time the last thread may be
// descheduled.
constexpr std::chrono::microseconds kLastTask{200};
// Number of polls between two yields; they take a few microseconds.
constexpr int kLooks = 64;

// Whether this thread runs a task. A nested launch runs in the same thread.
thread_local bool inside = false;

void breathe() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
  asm volatile("yield");
#endif
}

// Polls until `seen` returns true; returns false if `most` has passed. The bound is a time because
// a yield takes longer on a busy machine.
template <typename Seen>
bool look(std::chrono::microseconds most, Seen seen) {
  for (Clock::time_point begun{};; std::this_thread::yield()) {
    for (int i = 0; i < kLooks; ++i) {
      if (seen()) return true;
      breathe();
    }
    const Clock::time_point now = Clock::now();
    if (begun == Clock::time_point{}) begun = now;
    if (now - begun >= most) return false;
  }
}

int run_alone(KernelTask task, void* closure) {
  KernelGroup group{nullptr, 1};
  return task(0, &group, closure);
}

}  // namespace

KernelThreads::KernelThreads(int threads) : slots_(static_cast<size_t>(std::max(threads, 1))) {
  try {
    for (int own = 1; own < size(); ++own) threads_.emplace_back([this, own] { serve(own); });
  } catch (const std::system_error& error) {
    end();
    throw Error(WHERRY_INTERNAL, concat("the system gives this process no ", threads,
                                        " threads: ", error.what(), ". Ask for fewer"));
  }
}

KernelThreads::~KernelThreads() { end(); }

void KernelThreads::end() {
  ended_.store(true);
  announce();
  for (std::thread& thread : threads_) thread.join();
}

#if defined(_WIN32)
void KernelThreads::abandon() {
  // When the process ends, Windows has ended its threads, also one that held a lock of `announce`.
  if (RtlDllShutdownInProgress()) return;
  ended_.store(true);
  announce();
  for (std::thread& thread : threads_) thread.detach();
}
#endif

int KernelThreads::launch(KernelTask task, void* closure) {
  if (size() == 1) return run_alone(task, closure);
  task_ = task;
  closure_ = closure;
  failed_.store(false, std::memory_order_relaxed);
  unfinished_.store(size(), std::memory_order_relaxed);
  const uint64_t launch = launch_.load(std::memory_order_relaxed) + 1;
  for (TaskSlot& slot : slots_) slot.state.store(2 * launch, std::memory_order_release);
  announce();
  work(launch, 0);
  auto finished = [this] { return unfinished_.load() == 0; };
  if (!look(kLastTask, finished)) {
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.store(true);
    finished_.wait(lock, finished);
    waiting_.store(false);
  }
  if (!failed_.load(std::memory_order_relaxed)) return 0;
  if (error_) ffi::details::SetSafeCallRaised(*error_);
  error_.reset();
  return -1;
}

// Publishes a new launch number to polling and sleeping threads. Either a thread that is about to
// sleep sees the number, or this function sees the thread in `sleeping_`.
void KernelThreads::announce() {
  launch_.fetch_add(1);
  if (sleeping_.load() == 0) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
  }  // every thread counted in sleeping_ is in wait() by now
  launched_.notify_all();
}

void KernelThreads::serve(int own) {
  inside = true;
  this_thread::run_soon();
  uint64_t launch = 0;
  while (await(launch)) work(launch, own);
}

// Waits for a launch after `launch`, and sets `launch` to it. Returns false if the threads shall
// end.
bool KernelThreads::await(uint64_t& launch) {
  auto another = [&] { return launch_.load() != launch; };
  if (!look(kBetweenSteps, another)) {
    std::unique_lock<std::mutex> lock(mutex_);
    sleeping_.fetch_add(1);
    launched_.wait(lock, another);
    sleeping_.fetch_sub(1);
  }
  launch = launch_.load();
  return !ended_.load();
}

void KernelThreads::work(uint64_t launch, int own) {
  for (int i = 0; i < size(); ++i) {
    const int task = (own + i) % size();
    if (!take(launch, task)) continue;
    run(task);
    finish();
  }
}

bool KernelThreads::take(uint64_t launch, int task) {
  std::atomic<uint64_t>& state = slots_[static_cast<size_t>(task)].state;
  uint64_t offered = 2 * launch;
  return state.load(std::memory_order_relaxed) == offered &&
         state.compare_exchange_strong(offered, offered + 1, std::memory_order_acquire);
}

void KernelThreads::run(int task) {
  const bool before = inside;
  inside = true;
  KernelGroup group{nullptr, size()};
  if (task_(task, &group, closure_) != 0) {
    ffi::Error error = ffi::details::MoveFromSafeCallRaised();
    if (!failed_.exchange(true)) error_ = std::move(error);
  }
  inside = before;
}

void KernelThreads::finish() {
  if (unfinished_.fetch_sub(1) != 1 || !waiting_.load()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
  }
  finished_.notify_one();
}

// ---- entry points for compiled code ----

namespace {

constexpr char kSymbol[] = "__TVMBackendParallelLaunch";

#if defined(_WIN32)
// A thread's pool ends with the thread. Windows runs that destructor under a lock that ending
// threads wait for, so they are not waited for.
struct EndedLater {
  void operator()(KernelThreads* threads) const { threads->abandon(); }
};
thread_local std::unique_ptr<KernelThreads, EndedLater> pool;
#else
thread_local std::unique_ptr<KernelThreads> pool;
#endif

// TVM's own launch function; null if it is not loaded.
int (*others)(KernelTask, void*, int) = nullptr;

}  // namespace

void take_kernel_launches() {
  static std::once_flag once;
  std::call_once(once, [] {
    others = reinterpret_cast<decltype(others)>(context_symbol(kSymbol));
    TVM_FFI_CHECK_SAFE_CALL(
        TVMFFIEnvModRegisterContextSymbol(kSymbol, reinterpret_cast<void*>(launch_kernel)));
  });
}

void configure_kernel_threads(int threads) {
  threads = limited_threads(threads);
  if (pool && pool->size() == threads) return;
  pool.reset();  // ends the pool's threads before new ones start
  pool.reset(new KernelThreads(threads));
}

int launch_kernel(KernelTask task, void* closure, int tasks) {
  if (inside) return run_alone(task, closure);
  if (pool) return pool->launch(task, closure);
  return others ? others(task, closure, tasks) : run_alone(task, closure);
}

}  // namespace wherry
