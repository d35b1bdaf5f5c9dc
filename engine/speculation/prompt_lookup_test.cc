#include "speculation/prompt_lookup.h"

#include "testing/testing.h"

namespace wherry {
namespace {

using Ints = std::vector<int32_t>;

TEST(what_followed_before_is_proposed_again) {
  PromptLookup lookup({});
  Ints tokens{1, 2, 3, 4, 5, 6, 9, 9, 1, 2, 3};
  CHECK((lookup.propose(tokens, 8, 3) == Ints{4, 5, 6}));
  CHECK((lookup.propose(tokens, 8, 2) == Ints{4, 5}));
  tokens.insert(tokens.end(), {7, 7, 7});
  CHECK(lookup.propose(tokens, 8, 3).empty());
}

TEST(the_longer_and_the_newer_place_wins) {
  PromptLookup lookup({});
  // "3 4 5" occurs twice: 6 follows the longer match "1 2 3 4 5", and 7 follows the newer "8 8 3 4
  // 5".
  CHECK((lookup.propose({1, 2, 3, 4, 5, 6, 8, 8, 3, 4, 5, 7, 0, 1, 2, 3, 4, 5}, 18, 1) == Ints{6}));
  PromptLookup other({});
  CHECK((other.propose({1, 2, 3, 4, 5, 6, 8, 8, 3, 4, 5, 7, 0, 0, 0, 3, 4, 5}, 18, 1) == Ints{7}));
}

TEST(a_prediction_is_followed_from_its_start_and_matches_again) {
  PromptLookup lookup({10, 11, 12, 13, 14, 15, 16});
  CHECK((lookup.propose({1}, 1, 2) == Ints{10, 11}));
  CHECK((lookup.propose({1, 10}, 1, 2) == Ints{11, 12}));
  CHECK(lookup.propose({1, 10, 5}, 1, 2).empty());
  CHECK((lookup.propose({1, 10, 5, 12, 13, 14}, 1, 9) == Ints{15, 16}));
}

TEST(a_text_that_repeats_itself) {
  PromptLookup lookup({});
  // The proposal ends where the text ends.
  CHECK((lookup.propose({5, 5, 5, 5, 5}, 5, 8) == Ints{5}));
}

}  // namespace
}  // namespace wherry
