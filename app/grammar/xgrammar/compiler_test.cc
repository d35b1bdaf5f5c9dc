// Tests grammars of apps from a request's fields to tokens; tests/app/test_guided.py checks the
// outputs with validators.
#include <atomic>
#include <random>

#include "app/grammar/fields.h"
#include "app/grammar/grammars.h"
#include "app/request/request_error.h"
#include "app/text/json_tokenizer.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"
#include "testing/testing.h"

namespace {

using namespace wherry;
using namespace wherry::app;

// The tokens are bytes, then special tokens, then words.
constexpr int32_t kEnd = 256, kMark = 257, kTokens = 262;

std::unique_ptr<const Tokenizer> bytes() {
  std::string vocab, added;
  const char* const kWords[] = {"fox", "ab", "\\\": ", "\\\"}"};
  for (int i = 0; i < 256; ++i) {
    char name[16];
    std::snprintf(name, sizeof name, "\"<0x%02X>\":%d,", i, i);
    vocab += name;
  }
  for (int i = 0; i < 4; ++i) {
    vocab += "\"" + std::string(kWords[i]) + "\":" + std::to_string(258 + i) + ",";
  }
  for (const auto& [name, id] : {std::pair("</s>", kEnd), std::pair("<mark>", kMark)}) {
    const std::string text = name;
    vocab += "\"" + text + "\":" + std::to_string(id) + ",";
    added += (added.empty() ? "" : ",") + ("{\"id\":" + std::to_string(id)) + ",\"content\":\"" +
             text + "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false," +
             "\"normalized\":false,\"special\":true}";
  }
  vocab.pop_back();
  return JsonTokenizer::read(
      R"({"model":{"type":"BPE","byte_fallback":true,"merges":[],"vocab":{)" + vocab +
      R"(}},"added_tokens":[)" + added +
      R"(],"decoder":{"type":"Sequence","decoders":[
        {"type":"Replace","pattern":{"String":"▁"},"content":" "},
        {"type":"ByteFallback"},{"type":"Fuse"}]}})");
}

// A fake model that draws random tokens that the request's mask allows.
class Drawing {
 public:
  explicit Drawing(const std::string& request, uint64_t seed = 1)
      : tokenizer_(bytes()), grammars_(*tokenizer_, kTokens), random_(seed) {
    const auto constraint = constraint_of(Fields(json::from_json(request)), *tokenizer_);
    record_ = grammars_.compiled(constraint.value())->mask({kEnd});
  }
  ~Drawing() {
    if (record_.release != nullptr) record_.release(record_.context);
  }

  std::vector<int32_t> allowed() {
    std::vector<uint32_t> bits(kTokens / 32 + 1, ~0u);
    int all = 1;
    CHECK_EQ(record_.fill(record_.context, bits.data(), bits.size(), &all), 0);
    std::vector<int32_t> result;
    for (int32_t id = 0; id < kTokens; ++id) {
      if ((bits[static_cast<size_t>(id) / 32] >> id % 32 & 1) != 0) result.push_back(id);
    }
    return result;
  }

  bool accept(int32_t token) {
    int complete = 0;
    CHECK_EQ(record_.accept(record_.context, token, &complete), 0);
    return complete != 0;
  }

  std::vector<int32_t> forced(size_t cap) {
    std::vector<int32_t> tokens(cap);
    size_t n = 0;
    CHECK_EQ(record_.forced(record_.context, tokens.data(), cap, &n), 0);
    tokens.resize(n);
    return tokens;
  }

  // Draws an output of at most `most` tokens; returns "" if that was too few.
  std::string text(size_t most) {
    std::string result;
    for (size_t n = 0; n < most; ++n) {
      const std::vector<int32_t> now = allowed();
      const int32_t token = now[random_() % now.size()];
      if (token == kEnd) return result;
      result += tokenizer_->piece(token);
      if (accept(token)) return result;
    }
    return "";
  }

 private:
  std::unique_ptr<const Tokenizer> tokenizer_;
  Grammars grammars_;
  std::mt19937_64 random_;
  wherry_mask record_{};
};

std::string refusal(const std::string& request) {
  try {
    Drawing drawing(request);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

TEST(a_choice_ends_where_nothing_can_follow) {
  Drawing drawing(R"({"guided_choice": ["fox", "fog"]})");
  CHECK(drawing.allowed() == (std::vector<int32_t>{'f', 258}));
  CHECK(drawing.forced(8).empty());
  CHECK(!drawing.accept('f'));
  CHECK(drawing.forced(8) == std::vector<int32_t>{'o'});
  CHECK(!drawing.accept('o'));
  CHECK(drawing.allowed() == (std::vector<int32_t>{'g', 'x'}));
  CHECK(drawing.accept('x'));
}

TEST(an_end_is_allowed_where_the_text_is_complete) {
  Drawing drawing(R"({"guided_choice": ["a", "ab"]})");
  CHECK(drawing.allowed() == (std::vector<int32_t>{'a', 259}));
  CHECK(!drawing.accept('a'));
  CHECK(drawing.allowed() == (std::vector<int32_t>{'b', kEnd}));
  CHECK(drawing.accept(kEnd));
}

TEST(special_tokens_are_no_text) {
  Drawing drawing(R"r({"guided_regex": "<mark>|(.|\\n)"})r");
  for (const int32_t id : drawing.allowed()) CHECK(id != kMark && id != kEnd && id != 0xFF);
}

TEST(schemas_give_json) {
  const std::string request = R"({"response_format": {"type": "json_schema", "json_schema": {
    "schema": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": [1, null]}},
               "required": ["a", "b"], "additionalProperties": false}}}})";
  size_t complete = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const std::string text = Drawing(request, seed).text(600);
    if (text.empty()) continue;
    const Value value = json::from_json(unicode::well_formed(text));
    CHECK(value.dict().find("a")->is_string());
    CHECK_EQ(value.dict().items.size(), size_t{2});
    ++complete;
  }
  CHECK(complete > 0);
}

TEST(what_takes_too_long_is_an_error) {
  CHECK(refusal(R"({"guided_regex": "((((a?){50}){50}){50}){50}"})").find("guided_regex cannot") ==
        0);
  std::string grammar = "root ::= r0\\n";
  for (int i = 0; i < 300; ++i) {
    grammar += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" +
               std::to_string(i + 1) + "\\n";
  }
  refusal(R"({"grammar": ")" + grammar + R"(r300 ::= \"a\""})");
  CHECK_EQ(Drawing(R"({"guided_choice": ["fox"]})").text(9), "fox");
}

TEST(what_nobody_waits_for_is_given_up) {
  const auto tokenizer = bytes();
  const auto compiler = compiler_of(*tokenizer, kTokens);
  std::string choices;
  for (int i = 0; i < 400; ++i) choices += ",\"choice " + std::to_string(i * 7919) + "\"";
  const std::string request = "{\"guided_choice\": [" + choices.substr(1) + "]}";
  const Constraint constraint = constraint_of(Fields(json::from_json(request)), *tokenizer).value();
  std::atomic<bool> cancelled{false};
  CHECK(compiler->compile(constraint, cancelled) != nullptr);
  cancelled = true;
  ERROR_OF(WHERRY_INVALID_ARGUMENT, compiler->compile(constraint, cancelled));
  cancelled = false;
  CHECK(compiler->compile(constraint, cancelled) != nullptr);
}

TEST(what_the_library_ignores_is_an_error) {
  CHECK(refusal(R"({"guided_regex": "a^b"})").find("guided_regex cannot be enforced") == 0);
}

// Tests that damaged requests get a response or an error; AddressSanitizer checks memory accesses.
TEST(damaged_requests) {
  const std::string complete[] = {
      R"({"guided_json": {"type": "object", "properties": {"a": {"type": ["string", "null"]},
          "b": {"$ref": "#/$defs/c"}}, "required": ["b"], "additionalProperties": {"minimum": -3},
          "$defs": {"c": {"anyOf": [{"const": [1, {"x": "y"}]}, {"items": {"enum": ["p", 2.5]},
          "minItems": 1, "maxItems": 3, "type": "array"}]}}}})",
      R"r({"guided_regex": "[a-c]{2,20}(\\d|é+)?(?:ab|c)*x.[^x]\\w+\\s\\S{3}"})r",
      R"({"grammar": "root ::= (\"a\" | [^b-d\\n]){2,9} x?\nx[lazy] ::= [^]* \"end\" # no\n"})",
      R"({"grammar": "start: a* %json {\"type\": \"number\"} B\na: \"x\" | B\nB: /b+[^c]/\n"})"};
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string request = complete[i % 4];
    const size_t begin = 14 + random() % (request.size() - 16), size = random() % 6;
    const std::string piece = request.substr(14 + random() % (request.size() - 20), random() % 5);
    request.replace(begin, std::min(size, request.size() - 2 - begin), piece);
    try {
      json::from_json(request);
    } catch (const json::Failure&) {
      continue;
    }
    try {
      Drawing(request, random()).text(12);
    } catch (const RequestError&) {
    }
  }
}

}  // namespace
