#include "vm/threads.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace wherry {

namespace {

#if defined(__linux__)
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Counts the physical cores that this process may run on.
int allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::string> cores;  // a core is named by the list of its hardware threads
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::string number = std::to_string(cpu);
    std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + number + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? number : siblings);
  }
  return static_cast<int>(cores.size());
}

// Returns the lowest quota in cores of this process's cgroup and its ancestors; 0 if there is none.
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

}  // namespace wherry
