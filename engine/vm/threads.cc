#include "vm/threads.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
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

// Counts the physical cores that this process may run on, and that are not small.
int allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::map<std::string, int> cores;  // its list of hardware threads -> its capacity
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::string number = std::to_string(cpu);
    const std::string folder = "/sys/devices/system/cpu/cpu" + number;
    std::string siblings = first_line(folder + "/topology/thread_siblings_list");
    const std::string capacity = first_line(folder + "/cpu_capacity");
    cores[siblings.empty() ? number : siblings] = std::atoi(capacity.c_str());
  }
  std::vector<int> capacities;
  for (const auto& [siblings, capacity] : cores) capacities.push_back(capacity);
  return large_cores(capacities);
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
#elif defined(__APPLE__)
// Counts the cores of the fastest kind.
int allowed_cores() {
  int cores = 0;
  size_t size = sizeof cores;
  return sysctlbyname("hw.perflevel0.physicalcpu", &cores, &size, nullptr, 0) == 0 ? cores : 0;
}
double cgroup_quota() { return 0; }
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

int large_cores(const std::vector<int>& capacities) {
  int largest = 0;
  for (const int capacity : capacities) largest = std::max(largest, capacity);
  // All threads of a kernel get equal parts, so that a core of less than half the speed delays it
  // by more than its help saves.
  return static_cast<int>(std::count_if(capacities.begin(), capacities.end(),
                                        [&](int capacity) { return 2 * capacity >= largest; }));
}

int default_threads() {
  int cores = allowed_cores();
  if (cores == 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  double quota = cgroup_quota();
  if (quota > 0) cores = std::min(cores, static_cast<int>(quota));
  return std::max(cores, 1);
}

}  // namespace wherry
