#include "app/load/cpu_features.h"

#include "support/matrix_units.h"
#include "testing/testing.h"

namespace wherry::app {

namespace {

TEST(features_are_those_that_all_cpus_have) {
  const std::string two =
      "processor\t: 0\nmodel name\t: some\nflags\t\t: fpu avx avx2 fma\nbugs\t\t: none\n\n"
      "processor\t: 1\nflags\t\t: fpu avx fma sse4_2\n";
  CHECK(features_of_all(two) == (std::set<std::string>{"fpu", "avx", "fma"}));
  CHECK(features_of_all("processor : 0\n").empty());
  CHECK(features_of_all("").empty());
}

TEST(missing_features_are_listed) {
  CHECK(missing_features({}).empty());
  CHECK(missing_features({"no_cpu_has_this"}) == std::vector<std::string>{"no_cpu_has_this"});
}

TEST(matrix_units_that_the_system_forbids_are_missing) {
  const std::set<std::string> all{"amx_bf16", "amx_tile", "avx512_bf16"};
  CHECK(without_matrix_units(all) == std::set<std::string>{"avx512_bf16"});
  CHECK(allow_matrix_units() == allow_matrix_units());
  CHECK(!missing_features({"amx_tile"}).empty() || allow_matrix_units());
}

}  // namespace

}  // namespace wherry::app
