#include "support/json_reader.h"

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(types_are_not_converted) {
  Problems problems;
  JsonReader reader(parse_json_object(R"({"i": 3, "b": true, "f": 1.0, "s": "x", "l": [1, "2"],
                                          "long": "a string longer than the small ones"})",
                                      "it", WHERRY_INTERNAL),
                    "it", problems);
  CHECK_EQ(reader.integer("i"), 3);
  CHECK_EQ(reader.string("s"), "x");
  CHECK_EQ(reader.string("long"), "a string longer than the small ones");
  CHECK_EQ(reader.integer_or("none", 7), 7);
  CHECK(problems.empty());
  reader.integer("b");
  reader.integer("f");
  reader.string("i");
  reader.integers("l");
  reader.strings("l");
  reader.objects("l");
  reader.objects("none");
  std::string text = ERROR_OF(WHERRY_BUSY, problems.raise(WHERRY_BUSY, "title"));
  for (const char* part : {"title:\n  - it: \"b\" must be an integer", "\"f\" must be an integer",
                           "\"i\" must be a string", "\"l\" must be a list of integers",
                           "\"l\" must be a list of strings", "\"l\" must be a list of objects",
                           "lacks \"none\" (a list of objects)"}) {
    CHECK_CONTAINS(text, part);
  }
}

TEST(the_depth_is_limited) {
  auto nested = [](size_t n) {
    return "{\"a\": " + std::string(n - 1, '[') + std::string(n - 1, ']') + "}";
  };
  parse_json_object(nested(64), "it", WHERRY_INTERNAL);
  // 100,000 levels once overflowed the parser's stack.
  for (size_t n : {65u, 100'000u}) {
    CHECK_CONTAINS(ERROR_OF(WHERRY_INTERNAL, parse_json_object(nested(n), "it", WHERRY_INTERNAL)),
                   concat("it nests ", n, " levels deep; at most 64 are read"));
  }
  const std::string quoted = "{\"a\": \"\\\"" + std::string(1000, '[') + "\"}";
  parse_json_object(quoted, "it", WHERRY_INTERNAL);
  // Text that is no JSON at all.
  std::string broken = std::string(500'000, ']') + std::string(100'000, '[');
  ERROR_OF(WHERRY_INTERNAL, parse_json_object(broken, "it", WHERRY_INTERNAL));
  ERROR_OF(WHERRY_INTERNAL,
           parse_json_object("{\"a\": \"" + std::string(9, '\\'), "it", WHERRY_INTERNAL));
}

TEST(long_lists_are_cut_and_counted) {
  Problems problems;
  for (int i = 0; i < 45; ++i) problems.add("line ", i);
  std::string text = ERROR_OF(WHERRY_BUSY, problems.raise(WHERRY_BUSY, "title"));
  CHECK_CONTAINS(text, "line 39\n  ... and 5 more");
}

}  // namespace
}  // namespace wherry
