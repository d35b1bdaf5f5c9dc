#include "speculation/prompt_lookup.h"

#include <algorithm>

#include "sampling/rng.h"

namespace wherry {

namespace {

constexpr int64_t kLong = 5, kShort = 3;  // lengths of the n-grams that must match

uint64_t hash_of(const int32_t* tokens, int64_t n) {
  auto hash = static_cast<uint64_t>(n);
  for (int64_t i = 0; i < n; ++i) hash = splitmix64(hash, static_cast<uint32_t>(tokens[i]));
  return hash;
}

std::vector<int32_t> part(const std::vector<int32_t>& text, int64_t from, int64_t most) {
  int64_t end = std::min(from + most, static_cast<int64_t>(text.size()));
  return {text.begin() + from, text.begin() + end};
}

}  // namespace

PromptLookup::PromptLookup(std::vector<int32_t> prediction) : prediction_(std::move(prediction)) {
  index(prediction_, 0, true);
}

// Indexes the n-grams before text[i], for i from `from` on. The n-gram at the end of the text is
// not indexed yet, because no token follows it.
void PromptLookup::index(const std::vector<int32_t>& text, int64_t from, bool predicted) {
  auto size = static_cast<int64_t>(text.size());
  for (int64_t i = std::max(from, kShort); i < size; ++i) {
    const int32_t* end = text.data() + i;
    short_[hash_of(end - kShort, kShort)] = {predicted, i};
    if (i >= kLong) long_[hash_of(end - kLong, kLong)] = {predicted, i};
  }
}

bool PromptLookup::follows(const Place& place, const std::vector<int32_t>& tokens,
                           int64_t n) const {
  const std::vector<int32_t>& text = place.predicted ? prediction_ : tokens;
  return std::equal(tokens.end() - n, tokens.end(), text.begin() + (place.next - n));
}

std::vector<int32_t> PromptLookup::propose(const std::vector<int32_t>& tokens, int64_t prompt_size,
                                           int64_t most) {
  auto size = static_cast<int64_t>(tokens.size());
  index(tokens, indexed_, false);
  indexed_ = size;
  for (int64_t n : {kLong, kShort}) {
    if (size < n) continue;
    const Index& places = n == kLong ? long_ : short_;
    auto match = places.find(hash_of(tokens.data() + size - n, n));
    if (match == places.end() || !follows(match->second, tokens, n)) continue;
    return part(match->second.predicted ? prediction_ : tokens, match->second.next, most);
  }
  // At the start of the output no n-gram can match yet, so the prediction is proposed from its
  // first token.
  int64_t output = size - prompt_size;
  bool begins = output <= kShort && output < static_cast<int64_t>(prediction_.size()) &&
                std::equal(tokens.end() - output, tokens.end(), prediction_.begin());
  return begins ? part(prediction_, output, most) : std::vector<int32_t>();
}

}  // namespace wherry
