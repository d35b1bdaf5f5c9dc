#include "app/value/code_points.h"

#include "testing/testing.h"

namespace wherry::unicode {
namespace {

#define U "\xEF\xBF\xBD"

// The cases are from The Unicode Standard, table 3-8; Python's decoder gives the same results.
TEST(each_ill_formed_part_becomes_one_replacement) {
  CHECK_EQ(well_formed("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
           "a" U U U "b" U "c" U U "d");
  CHECK_EQ(well_formed("\xED\xA0\x80"), U U U);        // encodes a surrogate
  CHECK_EQ(well_formed("\xC0\xAF\xE0\x80"), U U U U);  // has overlong forms
  CHECK_EQ(well_formed("\xF4\x90\x80\x80"), U U U U);  // is beyond U+10FFFF
  CHECK_EQ(well_formed("a\xF0\x9F\x8E"), "a" U);       // is cut off in a character
  CHECK(is_well_formed("aé日🎉"));
  CHECK(!is_well_formed("a\xC3"));
}

TEST(half_a_surrogate_waits_as_in_python) {
  Utf8Stream stream(false);
  CHECK_EQ(stream.push("\xED"), "");
  CHECK_EQ(stream.push("\xA0"), "");
  CHECK_EQ(stream.push("a"), U U "a");
}

TEST(bytes_may_come_one_by_one) {
  for (bool each : {false, true}) {
    Utf8Stream stream(each);
    std::string text;
    for (char byte : std::string("é日\xE4\xB8z🎉\xF0\x9F"))
      text += stream.push(std::string(1, byte));
    CHECK_EQ(text, each ? "é日" U U "z🎉" : "é日" U "z🎉");
    CHECK_EQ(stream.flush(), each ? U U : U);
  }
}

}  // namespace
}  // namespace wherry::unicode
