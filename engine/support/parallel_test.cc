#include "support/parallel.h"

#include <atomic>

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(each_is_called_once_and_those_that_fail_are_named) {
  for (int threads : {0, 1, 3, 100}) {
    for (size_t n : {0u, 1u, 1000u}) {
      std::atomic<size_t> calls{0};
      auto failed = failing(n, threads, [&](size_t i) { return ++calls, i % 3 != 0; });
      CHECK_EQ(calls.load(), n);
      CHECK_EQ(failed.size(), (n + 2) / 3);
      for (size_t k = 0; k < failed.size(); ++k) CHECK_EQ(failed[k], 3 * k);
    }
  }
}

}  // namespace
}  // namespace wherry
