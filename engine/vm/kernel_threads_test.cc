#include "vm/kernel_threads.h"

#include <tvm/ffi/error.h>

#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>

#include "testing/testing.h"
#include "vm/threads.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#endif

namespace wherry {
namespace {

namespace ffi = tvm::ffi;

// Counts how often each task of a launch ran, and the number of tasks that it was given.
struct Counts {
  std::array<std::atomic<int>, 16> runs{};
  std::atomic<int> tasks{0};
};

int count(int task, KernelGroup* group, void* closure) {
  auto& counts = *static_cast<Counts*>(closure);
  ++counts.runs[static_cast<size_t>(task)];
  counts.tasks = group->tasks;
  return 0;
}

TEST(each_task_is_run_once) {
  for (int threads : {1, 2, 3, 8}) {  // eight threads are more than most test machines have cores
    KernelThreads pool(threads);
    CHECK_EQ(pool.size(), threads);
    for (int launch = 0; launch < 2000; ++launch) {
      Counts counts;  // counts of this launch: a late thread would write to an older object
      CHECK_EQ(pool.launch(count, &counts), 0);
      CHECK_EQ(counts.tasks.load(), threads);
      for (int task = 0; task < 16; ++task) {
        CHECK_EQ(counts.runs[static_cast<size_t>(task)].load(), task < threads ? 1 : 0);
      }
    }
  }
}

TEST(sleeping_threads_are_woken) {
  KernelThreads pool(3);
  for (int launch = 0; launch < 5; ++launch) {
    // This sleep is longer than the 5 ms for which threads poll.
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    Counts counts;
    pool.launch(count, &counts);
    CHECK_EQ(counts.runs[0] + counts.runs[1] + counts.runs[2], 3);
  }
}

// Tasks 0 and 1 wait for each other in two threads, so the second thread must wake up.
TEST(tasks_run_side_by_side) {
  struct Pair {
    std::atomic<int> here{0};
  };
  auto meet = [](int, KernelGroup*, void* closure) {
    auto& pair = *static_cast<Pair*>(closure);
    ++pair.here;
    while (pair.here.load() < 2) std::this_thread::yield();
    return 0;
  };
  KernelThreads pool(2);
  for (int pause : {0, 15, 0, 15}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    Pair pair;
    CHECK_EQ(pool.launch(meet, &pair), 0);
  }
}

// One thread stays in its task until other threads have run all other tasks.
TEST(what_nobody_has_begun_is_done_by_others) {
  struct Rest {
    std::atomic<int> done{0};
  };
  auto task = [](int number, KernelGroup* group, void* closure) {
    auto& rest = *static_cast<Rest*>(closure);
    if (number != 0) return ++rest.done, 0;
    while (rest.done.load() < group->tasks - 1) std::this_thread::yield();
    return 0;
  };
  KernelThreads pool(4);
  Rest rest;
  CHECK_EQ(pool.launch(task, &rest), 0);
  CHECK_EQ(rest.done.load(), 3);
}

TEST(an_error_of_any_task_is_the_launchs) {
  auto fails = [](int task, KernelGroup*, void* closure) {
    if (task != *static_cast<int*>(closure)) return 0;
    ffi::details::SetSafeCallRaised(ffi::Error("ValueError", concat("of task ", task), ""));
    return -1;
  };
  KernelThreads pool(3);
  for (int task = 0; task < 3; ++task) {
    CHECK_EQ(pool.launch(fails, &task), -1);
    CHECK_EQ(std::string(ffi::details::MoveFromSafeCallRaised().message()),
             concat("of task ", task));
    Counts counts;  // counts of this launch alone
    CHECK_EQ(pool.launch(count, &counts), 0);
  }
}

TEST(a_launch_inside_a_task_is_one_task) {
  struct Inner {
    std::atomic<int> tasks{0};
  };
  auto outer = [](int, KernelGroup*, void* closure) {
    auto one = [](int, KernelGroup* group, void* inner) {
      static_cast<Inner*>(inner)->tasks += group->tasks;
      return 0;
    };
    return launch_kernel(one, closure, 0);
  };
  configure_kernel_threads(3);
  Inner inner;
  CHECK_EQ(launch_kernel(outer, &inner, 0), 0);
  CHECK_EQ(inner.tasks.load(), 3);
}

TEST(the_number_of_threads_changes) {
  for (int threads : {2, 2, 4, 1}) {
    configure_kernel_threads(threads);
    Counts counts;
    CHECK_EQ(launch_kernel(count, &counts, 0), 0);
    CHECK_EQ(counts.tasks.load(), threads);
  }
}

TEST(a_thread_that_was_not_configured_runs_kernels_alone) {
  Counts counts;
  std::thread([&] { launch_kernel(count, &counts, 0); }).join();
  CHECK_EQ(counts.tasks.load(), 1);  // one task, because this program has no TVM pool
}

#if !defined(_WIN32)  // whose clock() is not the CPU's time
TEST(idle_threads_sleep) {
  KernelThreads pool(4);
  Counts counts;
  pool.launch(count, &counts);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::clock_t before = std::clock();  // CPU time of the process
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 20);
}
#endif

#if defined(__linux__)
// A polling thread yields, which the operating system counts as a context switch and which costs a
// time slice on a busy core. TVM's three workers caused 30000 context switches.
TEST(the_end_does_not_wait_for_threads_that_look) {
  cpu_set_t before, one;
  CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  // New threads inherit the affinity to one core.
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  auto pool = std::make_unique<KernelThreads>(4);
  Counts counts;
  pool->launch(count, &counts);
  auto switches = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
  };
  const long at_first = switches();
  pool.reset();
  const long at_last = switches();
  CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  CHECK(at_last - at_first < 1000);
}
#endif

}  // namespace
}  // namespace wherry
