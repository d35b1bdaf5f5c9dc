#include "vm/threads.h"

#include <thread>

#include "support/thread_limit.h"
#include "testing/testing.h"

namespace wherry {
namespace {

TEST(quotas) {
  CHECK_EQ(quota_of_cpu_max("150000 100000"), 1.5);
  CHECK_EQ(quota_of_cpu_max("max 100000"), 0);
  CHECK_EQ(quota_of_cpu_max("-1 100000"), 0);  // a quota of -1 means no limit in cgroup v1
  CHECK_EQ(quota_of_cpu_max(""), 0);
  CHECK_EQ(quota_of_cpu_max("100000"), 0);
}

TEST(small_cores_do_not_count) {
  CHECK_EQ(large_cores({}), 0);
  CHECK_EQ(large_cores({0, 0, 0, 0}), 4);                                // unknown: all alike
  CHECK_EQ(large_cores({160, 160, 160, 160, 498, 498, 1024, 1024}), 2);  // Pixel 6
  CHECK_EQ(large_cores({325, 325, 325, 828, 828, 828, 828, 1024}), 5);   // Snapdragon 8 Gen 2
  CHECK_EQ(large_cores({800, 800, 800, 800, 800, 800, 1024, 1024}), 8);  // large ones alone
}

TEST(a_hot_device_limits_the_threads) {
  CHECK_EQ(limited_threads(4), 4);
  thread_limit() = 2;
  CHECK_EQ(limited_threads(4), 2);
  CHECK_EQ(limited_threads(1), 1);
  thread_limit() = 0;
}

TEST(the_default_is_within_the_machine) {
  int threads = default_threads();
  CHECK(threads >= 1);
  unsigned hardware = std::thread::hardware_concurrency();
  CHECK(hardware == 0 || threads <= static_cast<int>(hardware));
}

}  // namespace
}  // namespace wherry
