#include "app/text/detokenizer.h"

#include "app/text/json_tokenizer.h"
#include "app/text/stop_strings.h"
#include "testing/testing.h"

namespace wherry {
namespace {

std::unique_ptr<Tokenizer> fallback() {
  return JsonTokenizer::read(R"({"model": {"type": "BPE", "byte_fallback": true, "merges": [],
      "vocab": {"▁a": 0, "a": 1, "<0xC3>": 2, "<0xA9>": 3, "<0xE4>": 4, "<0xB8>": 5, "</s>": 6}},
      "added_tokens": [{"id": 6, "content": "</s>", "single_word": false, "lstrip": false,
                        "rstrip": false, "normalized": false, "special": true}],
      "decoder": {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
          {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})");
}

std::string pieces(Detokenizer detokenizer, const std::vector<int32_t>& ids) {
  std::string all;
  for (int32_t id : ids) all += detokenizer.push(id) + "|";
  return all + detokenizer.flush();
}

TEST(characters_come_complete_and_damage_stays_damage) {
  auto tokenizer = fallback();
  CHECK_EQ(pieces(Detokenizer(*tokenizer), {2, 3, 4, 5, 1}),
           "|é|||\xEF\xBF\xBD\xEF\xBF\xBD"
           "a|");
  CHECK_EQ(pieces(Detokenizer(*tokenizer), {4}), "|\xEF\xBF\xBD");
}

TEST(a_text_loses_its_first_space_and_a_continuation_does_not) {
  auto tokenizer = fallback();
  CHECK_EQ(pieces(Detokenizer(*tokenizer), {0, 0}), "a| a|");
  CHECK_EQ(pieces(Detokenizer(*tokenizer, {1}), {0}), " a|");
}

TEST(visible_tokens_come_by_name) {
  auto tokenizer = fallback();
  CHECK_EQ(pieces(Detokenizer(*tokenizer), {1, 6, 99}), "a|||");
  CHECK_EQ(pieces(Detokenizer(*tokenizer, {}, {6}), {2, 6}), "|\xEF\xBF\xBD</s>|");
}

TEST(a_stop_string_matches_across_cuts) {
  auto automaton = std::make_shared<StopAutomaton>(std::vector<std::string>{"STOP", "", "🎉"});
  StopStrings stops(automaton);
  CHECK_EQ(stops.push("abcST"), "abc");
  CHECK_EQ(stops.push("x🎈S"), "STx🎈");
  CHECK_EQ(stops.push("TOP and more"), "");
  CHECK(stops.stopped() && stops.match() == "STOP");
  CHECK_EQ(stops.push("more"), "");
  CHECK_EQ(stops.flush(), "");
  StopStrings other(automaton);
  CHECK_EQ(other.push("ST"), "");
  CHECK_EQ(other.flush(), "ST");
}

}  // namespace
}  // namespace wherry
