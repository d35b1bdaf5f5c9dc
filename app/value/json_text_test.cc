#include "app/value/json_text.h"

#include "testing/testing.h"

namespace wherry::json {
namespace {

std::string error_of(std::string_view text, Halves halves = Halves::kFail) {
  try {
    from_json(text, halves);
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

TEST(json_is_read_and_written) {
  const std::string text =
      R"({"a":[1,-2,3.5,1e3,null,true,false],"b":{},"c":[],"":"\"\\/é🎉\n\u0001"})";
  CHECK_EQ(to_compact_json(from_json(" " + text + "\r\n")),
           R"({"a":[1,-2,3.5,1000.0,null,true,false],"b":{},"c":[],"":"\"\\/é🎉\n\u0001"})");
  CHECK_EQ(from_json(R"("\u00e9\ud83c\udf89\b\f\/")").text(), "é🎉\b\f/");
  CHECK_EQ(to_compact_json(from_json(R"({"a":1,"b":2,"a":3})")), R"({"a":3,"b":2})");
  CHECK_EQ(to_compact_json(from_json("[NaN,Infinity,-Infinity]")), "[NaN,Infinity,-Infinity]");
}

TEST(integers_have_63_bits) {
  CHECK_EQ(from_json("9223372036854775807").integer(), INT64_MAX);
  CHECK_EQ(from_json("-9223372036854775808").integer(), INT64_MIN);
  CHECK(from_json("9223372036854775808").is(Kind::kFloat));
  CHECK_EQ(from_json("1.0").number(), 1.0);
  CHECK(from_json("-0").is(Kind::kInt));
}

// The messages are those of Python's json module.
TEST(what_is_no_json_is_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "Expecting value: line 1 column 1 (char 0)"},
      {"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
      {"[", "Expecting value: line 1 column 2 (char 1)"},
      {"[1,]", "Expecting value: line 1 column 4 (char 3)"},
      {"[1 2]", "Expecting ',' delimiter: line 1 column 4 (char 3)"},
      {"{\"a\"}", "Expecting ':' delimiter: line 1 column 5 (char 4)"},
      {"{\"a\":1,}", "Expecting property name enclosed in double quotes: line 1 column 8 (char 7)"},
      {"{\"é\":\n  [1,\n \"ü\" x]}", "Expecting ',' delimiter: line 3 column 6 (char 17)"},
      {"\"\\x\"", "Invalid \\escape: line 1 column 2 (char 1)"},
      {"\"\\u12g4\"", "Invalid \\uXXXX escape: line 1 column 3 (char 2)"},
      {"\"a\nb\"", "Invalid control character at: line 1 column 3 (char 2)"},
      {"\"a\\", "Unterminated string starting at: line 1 column 1 (char 0)"},
      {"01", "Extra data: line 1 column 2 (char 1)"},
      {"1.", "Extra data: line 1 column 2 (char 1)"},
      {"-Infinit", "Expecting value: line 1 column 1 (char 0)"},
  };
  for (const auto& [text, error] : cases) CHECK_EQ(error_of(text), error);
  CHECK_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "");
  CHECK_EQ(error_of(std::string(65, '[')), "it has more than 64 levels");
}

TEST(halves_of_surrogate_pairs_fail_or_are_kept) {
  for (const char* text : {"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\""}) {
    CHECK_CONTAINS(error_of(text), "half of a surrogate pair");
    CHECK_EQ(error_of(text, Halves::kKept), "");
  }
  CHECK_EQ(from_json("\"\\ud800\\u0041\"", Halves::kKept).text(), "\xED\xA0\x80\x41");
}

}  // namespace
}  // namespace wherry::json
