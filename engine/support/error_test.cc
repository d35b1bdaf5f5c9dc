#include "support/error.h"

#include <cstdint>
#include <limits>
#include <string_view>

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(texts_and_numbers_are_joined) {
  const std::string_view view = "view";
  const char* pointer = "pointer";
  CHECK_EQ(concat(), "");
  CHECK_EQ(concat("a", 'b', std::string("c"), view, pointer), "abcviewpointer");
  CHECK_EQ(concat(-3, " ", size_t{7}, " ", std::numeric_limits<int64_t>::min(), " ",
                  std::numeric_limits<uint64_t>::max()),
           "-3 7 -9223372036854775808 18446744073709551615");
  CHECK_EQ(concat(int8_t{65}, " ", uint8_t{66}, " ", true, false, " ", WHERRY_NOT_FOUND),
           "65 66 10 " + std::to_string(static_cast<int>(WHERRY_NOT_FOUND)));
}

// What messages have shown so far: the digits of a stream.
TEST(fractions_have_six_digits) {
  CHECK_EQ(concat(0.1, " ", 1.5F, " ", 3.0, " ", 1e30, " ", 1.0 / 3, " ", -2e-7),
           "0.1 1.5 3 1e+30 0.333333 -2e-07");
  CHECK_EQ(concat(std::numeric_limits<double>::infinity(), " ", 123456789.0), "inf 1.23457e+08");
}

}  // namespace
}  // namespace wherry
