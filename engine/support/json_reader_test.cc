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

TEST(long_lists_are_cut_and_counted) {
  Problems problems;
  for (int i = 0; i < 45; ++i) problems.add("line ", i);
  std::string text = ERROR_OF(WHERRY_BUSY, problems.raise(WHERRY_BUSY, "title"));
  CHECK_CONTAINS(text, "line 39\n  ... and 5 more");
}

}  // namespace
}  // namespace wherry
