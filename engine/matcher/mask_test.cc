// Tests masks with a fake llguidance; tests/runtime/grammar tests the real one.
#include "matcher/mask.h"

#include <set>
#include <string>
#include <vector>

#include "matcher/grammar.h"
#include "testing/testing.h"

namespace {

using namespace wherry;

// The tokens are 'a', 'b', ..., then "ab" at 38 and a special token at 39.
constexpr size_t kTokens = 40;
constexpr int32_t kAb = 38;
constexpr int32_t kSpecial = 39;

int32_t letter(char c) { return c - 'a'; }

std::shared_ptr<const Vocabulary> vocabulary() {
  std::string bytes;
  std::vector<uint32_t> lengths;
  auto add = [&](const std::string& text) {
    bytes += text;
    lengths.push_back(static_cast<uint32_t>(text.size()));
  };
  for (size_t i = 0; i < 38; ++i) {
    const bool shown = i < 26;
    add(shown ? std::string(1, static_cast<char>('a' + i)) : i == 30 ? "\xff" : "");
  }
  add("ab");
  add("\xff<end>");
  return std::make_shared<const Vocabulary>(WHERRY_FAKE_LLGUIDANCE,
                                            reinterpret_cast<const uint8_t*>(bytes.data()),
                                            lengths.data(), kTokens);
}

// A request with its mask; the destructor releases the mask.
class Request {
 public:
  explicit Request(const std::string& texts, std::vector<int32_t> stops = {kSpecial})
      : record_(Grammar(vocabulary(), "regex", texts).mask(stops.data(), stops.size())) {}
  ~Request() { record_.release(record_.context); }

  int fill(std::vector<uint32_t>& bits) {
    int all = 1;
    const int status = record_.fill(record_.context, bits.data(), bits.size(), &all);
    CHECK_EQ(all, 0);
    return status;
  }
  std::set<int32_t> allowed(size_t words = 2) {
    std::vector<uint32_t> bits(words, ~0u);
    CHECK_EQ(fill(bits), 0);
    std::set<int32_t> allowed;
    for (size_t i = 0; i < words * 32; ++i) {
      if ((bits[i / 32] >> i % 32 & 1) != 0) allowed.insert(static_cast<int32_t>(i));
    }
    return allowed;
  }
  bool accept(int32_t token) {
    int complete = -1;
    CHECK_EQ(record_.accept(record_.context, token, &complete), 0);
    return complete == 1;
  }
  bool refuses(int32_t token) {
    int complete = -1;
    return record_.accept(record_.context, token, &complete) != 0;
  }
  std::vector<int32_t> forced(size_t cap) {
    std::vector<int32_t> tokens(cap + 1, -7);
    size_t n = 99;
    CHECK_EQ(record_.forced(record_.context, tokens.data(), cap, &n), 0);
    CHECK_EQ(tokens[cap], -7);
    tokens.resize(n);
    return tokens;
  }
  std::string error() { return record_.error(record_.context); }

 private:
  wherry_mask record_;
};

using Tokens = std::vector<int32_t>;
using Set = std::set<int32_t>;

TEST(every_way_to_write_a_text_is_allowed) {
  Request request("abc|b");
  CHECK(request.allowed() == (Set{letter('a'), letter('b'), kAb}));
  CHECK(!request.accept(kAb));
  CHECK(request.allowed() == Set{letter('c')});
  CHECK(request.accept(letter('c')));
}

TEST(stop_ids_where_the_text_is_complete) {
  Request request("a|ab", {kSpecial, letter('b'), -1, 5'000});
  CHECK(request.allowed() == (Set{letter('a'), kAb}));
  CHECK(!request.accept(letter('a')));
  CHECK(request.allowed() == (Set{letter('b'), kSpecial}));  // "b" is a stop token here, not text
  CHECK(request.accept(letter('b')));
}

TEST(a_stop_id_too_early) {
  Request request("ab");
  CHECK(request.refuses(kSpecial));
  CHECK_EQ(request.error(), "structured output: stop token 39 in an incomplete text");
}

TEST(a_token_that_is_not_allowed) {
  Request request("ab");
  CHECK(request.refuses(letter('x')));
  CHECK_EQ(request.error(), "structured output: token not allowed");
  std::vector<uint32_t> bits(2);
  CHECK(request.fill(bits) != 0);
}

TEST(widths_of_the_mask) {
  Request request("ab");
  // The model has fewer logits than the vocabulary has tokens.
  CHECK(request.allowed(1) == Set{letter('a')});
  CHECK(request.allowed(9) == (Set{letter('a'), kAb}));
}

TEST(no_stop_token) {
  Request request("a|ab", {});
  CHECK(!request.accept(letter('a')));
  CHECK(request.allowed() == Set{letter('b')});
  Request empty("", {});
  std::vector<uint32_t> bits(2);
  CHECK(empty.fill(bits) != 0);
  CHECK_EQ(empty.error(),
           "structured output: the text is complete, and the request has no stop token that could "
           "end it");
}

TEST(forced_tokens_change_nothing) {
  Request request("xyzab|xyzac");
  const Tokens all = {letter('x'), letter('y'), letter('z')};
  CHECK(request.forced(8) == all);
  CHECK(request.forced(8) == all);
  CHECK(request.forced(2) == (Tokens{all[0], all[1]}));
  CHECK(request.forced(0).empty());
  CHECK(request.allowed() == Set{letter('x')});
  for (int32_t token : all) CHECK(!request.accept(token));
  CHECK(request.forced(8).empty());  // nothing is forced, because both "a" and "ab" are allowed
  CHECK(request.allowed() == (Set{letter('a'), kAb}));
}

TEST(forced_tokens_end_with_the_text) {
  Request request("xy");
  CHECK(request.forced(8) == (Tokens{letter('x'), letter('y')}));
  CHECK(!request.accept(letter('x')));
  CHECK(request.accept(letter('y')));
  CHECK(request.forced(8).empty());
  Request open("xy|xyz");
  // Only two tokens are forced, because the text may end after them.
  CHECK(open.forced(8) == (Tokens{letter('x'), letter('y')}));
}

TEST(errors_of_compiling) {
  CHECK_EQ(testing::error_of(__FILE__, __LINE__, WHERRY_INVALID_ARGUMENT,
                             [] { Grammar(vocabulary(), "regex", "("); }),
           "no brackets here");
  CHECK_EQ(testing::error_of(__FILE__, __LINE__, WHERRY_INVALID_ARGUMENT,
                             [] { Grammar(vocabulary(), "xml", "a"); }),
           "a grammar of kind \"xml\"; accepted are json_schema, regex, lark");
  testing::error_of(__FILE__, __LINE__, WHERRY_NOT_FOUND,
                    [] { open_llguidance("/nowhere/llguidance.so"); });
}

TEST(through_the_c_abi) {
  wherry_vocabulary* words = nullptr;
  wherry_grammar* grammar = nullptr;
  const uint8_t bytes[] = {'a', 'b'};
  const uint32_t lengths[] = {1, 1};
  CHECK_EQ(wherry_vocabulary_create(WHERRY_FAKE_LLGUIDANCE, bytes, lengths, 0, &words),
           WHERRY_INVALID_ARGUMENT);
  CHECK_EQ(wherry_vocabulary_create(WHERRY_FAKE_LLGUIDANCE, bytes, lengths, 2, &words), WHERRY_OK);
  CHECK_EQ(wherry_grammar_compile(words, "regex", "(", &grammar), WHERRY_INVALID_ARGUMENT);
  CHECK_EQ(std::string(wherry_last_error()), "no brackets here");
  CHECK_EQ(wherry_grammar_compile(words, "regex", "ba", &grammar), WHERRY_OK);
  wherry_mask mask{};
  CHECK_EQ(wherry_grammar_mask(grammar, nullptr, 1, &mask), WHERRY_INVALID_ARGUMENT);
  CHECK_EQ(wherry_grammar_mask(grammar, nullptr, 0, &mask), WHERRY_OK);
  wherry_vocabulary_free(words);
  wherry_grammar_free(grammar);
  uint32_t bits = 0;
  int all = 1;
  CHECK_EQ(mask.fill(mask.context, &bits, 1, &all), 0);
  CHECK_EQ(bits, 2u);
  mask.release(mask.context);
}

}  // namespace
