#include "model/threads.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace wherry {

namespace {

namespace ffi = tvm::ffi;

#if defined(__linux__)
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Processors this process may run on, one for each physical core.
int allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::string> cores;  // each named by the list of its hardware threads
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::string number = std::to_string(cpu);
    std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + number + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? number : siblings);
  }
  return static_cast<int>(cores.size());
}

// The tightest quota of this process's cgroup and the groups above it, in cores; 0: none.
double cgroup_quota() {
  std::string group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) == 0) group = line.substr(3);
  }
  double quota = 0;
  for (;; group.resize(group.rfind('/'))) {
    double here = quota_of_cpu_max(first_line("/sys/fs/cgroup" + group + "/cpu.max"));
    if (here > 0) quota = quota > 0 ? std::min(quota, here) : here;
    if (group.rfind('/') == std::string::npos) break;
  }
  std::string v1 = first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") + " " +
                   first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double here = quota_of_cpu_max(v1);
  return here > 0 && quota > 0 ? std::min(quota, here) : std::max(quota, here);
}
#else
int allowed_cores() { return 0; }
double cgroup_quota() { return 0; }
#endif

}  // namespace

double quota_of_cpu_max(const std::string& text) {
  std::istringstream in(text);
  double quota = 0, period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

int default_threads() {
  int cores = allowed_cores();
  if (cores == 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  double quota = cgroup_quota();
  if (quota > 0) cores = std::min(cores, static_cast<int>(quota));
  return std::max(cores, 1);
}

void configure_kernel_threads(int threads) {
  thread_local int configured = 0;
  if (configured == threads) return;
  auto configure = ffi::Function::GetGlobal("runtime.config_threadpool");
  if (!configure.has_value()) return;
#if !defined(_WIN32)
  // TVM would pin the pool of each calling thread to the same first cores, so that two engines, or
  // two processes, would share those and leave the others idle. It reads this when it pins.
  // Its workers look for work this often, and yield each time, before they sleep: about 5 ms, more
  // than lies between two steps. By default it is 300000, 150 ms of a core after the last step.
  static std::once_flag prepared;
  std::call_once(prepared, [] {
    setenv("TVM_BIND_THREADS", "0", /*overwrite=*/0);
    setenv("TVM_THREAD_POOL_SPIN_COUNT", "10000", /*overwrite=*/0);
  });
#endif
  // The length of the list of processors is what sets the number of threads; without pinning the
  // numbers in it say nothing.
  ffi::Array<ffi::String> processors;
  for (int i = 0; i < threads; ++i) processors.push_back(std::to_string(i));
  constexpr int kShareAllCores = -3;
  (*configure)(kShareAllCores, threads, processors);
  configured = threads;
}

}  // namespace wherry
