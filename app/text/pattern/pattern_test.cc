#include "app/text/pattern/pattern.h"

#include "testing/testing.h"

namespace wherry::text {
namespace {

std::string matches(std::string_view source, std::string_view text) {
  std::string result;
  for (Match match : Pattern::regex(source).all(text)) {
    result += "[" + std::string(text.substr(match.begin, match.end - match.begin)) + "]";
  }
  return result;
}

TEST(classes_know_all_characters) {
  CHECK_EQ(matches(R"(\p{L}+)", "aé日 1"), "[aé日]");
  CHECK_EQ(matches(R"([^\s\p{L}]+)", "a1! é"), "[1!]");
  CHECK_EQ(matches(R"([\p{L}&&[^a-c]]+)", "abcdé"), "[dé]");
  CHECK_EQ(matches(R"(\p{Lu}\P{Lu})", "ÄbC"), "[Äb]");
}

TEST(a_run_gives_back_what_follows_needs) {
  CHECK_EQ(matches(R"(\s+(?!\S)|\s+)", "a   b "), "[  ][ ][ ]");
  CHECK_EQ(matches(R"(\s*[\r\n]+|x)", "  \n x"), "[  \n][x]");
  CHECK_EQ(matches(R"(a++a)", "aaa"), "");
  CHECK_EQ(matches(R"(\p{N}{1,3})", "12345"), "[123][45]");
}

TEST(case_is_minded_or_not) {
  CHECK_EQ(matches(R"((?i:'s|'ll)|x)", "'S'LL'ſX"), "['S]['LL]['ſ]");
  CHECK_EQ(matches(R"((?i)[a-c]|É)", "Bé"), "[B][é]");
}

TEST(empty_matches_do_not_follow_upon_another) {
  CHECK_EQ(matches("b*", "abba"), "[][bb][]");
  CHECK_EQ(matches("", "é"), "[][]");
  CHECK_EQ(Pattern::literal("ab").all("abxab").size(), size_t{2});
}

TEST(what_cannot_be_read_is_named) {
  auto error = [](const char* source) {
    return ERROR_OF(WHERRY_INVALID_ARGUMENT, Pattern::regex(source));
  };
  CHECK_CONTAINS(error(R"(\p{Klingon})"), "\\p{Klingon}");
  CHECK_CONTAINS(error("(a"), "a ( without )");
  CHECK_CONTAINS(error("a)"), "a ) without (");
  CHECK_CONTAINS(error("[a"), "a [ without ]");
  CHECK_CONTAINS(error("(?<n>a)"), "not supported");
  CHECK_CONTAINS(error("(a*)*"), "without a character");
  CHECK_CONTAINS(error("((a{1,900}b){900}c){90}"), "too long");
  CHECK_CONTAINS(error(std::string(200, '(').c_str()), "too deep");
}

TEST(steps_are_bounded) {
  std::string text(3000, 'a');
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, Pattern::regex("(a|a)+(a|a)+(a|a)+b").all(text)),
                 "steps");
}

}  // namespace
}  // namespace wherry::text
