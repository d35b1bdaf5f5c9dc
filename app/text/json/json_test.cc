#include "app/text/json/json.h"

#include "testing/testing.h"

namespace wherry::text {
namespace {

std::string error_of_text(const std::string& text) {
  return ERROR_OF(WHERRY_INVALID_ARGUMENT, Json::parse(text));
}

TEST(strings_have_escapes) {
  auto json =
      Json::parse(R"( {"a\u00e9": "\ud83c\udf89\n\"\\\/", "b": ["x", -1.5e2, true, null]} )");
  CHECK_EQ(json.at("aé").string(), "🎉\n\"\\/");
  auto list = json.at("b").elements();
  CHECK_EQ(list.size(), size_t{4});
  CHECK_EQ(list[1].number(), -150.0);
  CHECK(list[2].boolean());
  CHECK(!json.find("c"));
}

TEST(what_is_no_json_is_refused) {
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "\"\\x\"", "\"\\ud800\"", "01",
                           "1.", "nul", "[1] 2", "\"a\nb\"", "\"a", "{a:1}"}) {
    CHECK_CONTAINS(error_of_text(text), "tokenizer.json is not JSON");
  }
  CHECK_CONTAINS(error_of_text("\"\xff\""), "UTF-8");
  CHECK_CONTAINS(error_of_text(std::string(100, '[')), "64 levels");
}

TEST(errors_have_path_and_value) {
  auto json = Json::parse(R"({"a": 1, "model": {"merges": [["x"], [1, {"b": "c"}]]}})");
  auto value = json.at("model").at("merges").elements()[1].elements()[1].at("b");
  std::string error = ERROR_OF(WHERRY_INVALID_ARGUMENT, value.integer());
  CHECK_CONTAINS(error, "tokenizer.json.model.merges[1][1].b is \"c\": it must be an integer");
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, json.at("z")), "it lacks \"z\"");
}

}  // namespace
}  // namespace wherry::text
