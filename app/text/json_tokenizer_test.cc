#include "app/text/json_tokenizer.h"

#include <ctime>

#include "testing/testing.h"

namespace wherry {
namespace {

using Ids = std::vector<int32_t>;

std::string file(const std::string& model, const std::string& rest = "") {
  return R"({"version": "1.0", "model": )" + model + rest + "}";
}

const char kModel[] =
    R"({"type": "BPE", "unk_token": null, "vocab": {"a": 0, "b": 1, "ab": 2, "abab": 3},
    "merges": [["a", "b"], "ab ab"]})";

std::string error_of_file(const std::string& text) {
  return ERROR_OF(WHERRY_INVALID_ARGUMENT, JsonTokenizer::read(text));
}

TEST(pairs_of_lowest_rank_are_merged_first) {
  auto result = JsonTokenizer::read(file(kModel));
  CHECK(result->encode("abababa", true) == (Ids{3, 2, 0}));
  // Without a decoder, names are joined with spaces.
  CHECK_EQ(result->decode({3, 9, 0}, true), "abab a");
  CHECK_EQ(result->vocab_size(), size_t{4});
  CHECK_EQ(result->largest_id(), 3);
}

TEST(added_tokens_match_first) {
  auto result = JsonTokenizer::read(file(kModel, R"(, "added_tokens": [
      {"id": 7, "content": "<x>", "single_word": false, "lstrip": true, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 1, "content": "b", "single_word": true, "lstrip": false, "rstrip": false,
       "normalized": false, "special": false}])"));
  // The id in the file is ignored, so a new token gets the next free id.
  CHECK(result->encode("a  <x>ab b", true) == (Ids{0, 4, 2, 1}));
  CHECK_EQ(result->decode({0, 4, 1}, true), "a b");
  CHECK_EQ(result->decode({0, 4, 1}, false), "a <x> b");
  CHECK(result->is_special(4) && !result->is_special(1));
  CHECK(result->special_id("<x>") == 4 && !result->special_id("b"));
  CHECK_EQ(result->piece(4), "<x>");
}

TEST(what_is_wrong_is_named_with_its_path_and_value) {
  CHECK_CONTAINS(error_of_file("{}"), "tokenizer.json is {}: it lacks \"model\"");
  CHECK_CONTAINS(error_of_file(file(R"({"type": "Magic"})")),
                 ".model.type is \"Magic\": known are BPE");
  CHECK_CONTAINS(error_of_file(file(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})")),
                 ".model.vocab.a is -1: ids go from 0");
  CHECK_CONTAINS(
      error_of_file(file(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]})")),
      ".model.merges[0] is [\"a\", \"b\"]: the vocabulary has no token \"b\"");
  CHECK_CONTAINS(error_of_file(file(kModel, R"(, "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "NFC"}, {"type": "Upper"}]})")),
                 ".normalizer.normalizers[1].type is \"Upper\": known normalizers");
  CHECK_CONTAINS(error_of_file(file(kModel, R"(, "pre_tokenizer": {"type": "UnicodeScripts"})")),
                 "known pre-tokenizers");
  CHECK_CONTAINS(error_of_file(file(kModel, R"(, "decoder": {"type": "CTC"})")), "known decoders");
  CHECK_CONTAINS(error_of_file(file(kModel, R"(, "pre_tokenizer": {"type": "Split", "pattern":
      {"Regex": "(a"}, "behavior": "Isolated", "invert": false})")),
                 ".pre_tokenizer.pattern.Regex is \"(a\"");
  CHECK_CONTAINS(
      error_of_file(file(R"({"type": "BPE", "dropout": 0.1, "vocab": {}, "merges": []})")),
      "dropout");
  CHECK_CONTAINS(error_of_file(file(R"({"type": "Unigram", "unk_id": 5, "vocab": [["a", 0]]})")),
                 ".model.unk_id is 5");
}

TEST(a_long_word_takes_linear_time) {
  auto result = JsonTokenizer::read(file(kModel));
  auto seconds = [&](size_t n) {
    std::string text;
    for (size_t i = 0; i < n; ++i) text += "ab";
    std::clock_t begin = std::clock();
    CHECK_EQ(result->encode(text, false).size(), n / 2);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  // The text is sixteen times as long: even with a sanitizer, n log n takes far less time than n
  // squared.
  CHECK(seconds(1 << 16) < 60 * seconds(1 << 12) + 0.05);
}

}  // namespace
}  // namespace wherry
