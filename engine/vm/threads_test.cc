#include "vm/threads.h"

#include <thread>

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

TEST(the_default_is_within_the_machine) {
  int threads = default_threads();
  CHECK(threads >= 1);
  unsigned hardware = std::thread::hardware_concurrency();
  CHECK(hardware == 0 || threads <= static_cast<int>(hardware));
}

}  // namespace
}  // namespace wherry
