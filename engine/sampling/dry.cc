#include "sampling/dry.h"

#include <algorithm>
#include <utility>

#include "sampling/elementary.h"
#include "sampling/rng.h"

namespace wherry {

namespace {

// Upper bound on the length of n-grams to hash; longer matches are compared.
constexpr int64_t kLongestRun = 8;
constexpr double kGreatestCost = 1e30;  // finite, so that the only allowed token stays possible

int64_t run_length(const SamplingParams& params) {
  return std::min<int64_t>(params.dry_allowed_length, kLongestRun);
}

// Returns the hash of the n-gram of this length that ends at index `last`.
uint64_t hash_of_run(const std::vector<int32_t>& tokens, size_t last, int64_t length) {
  auto hash = static_cast<uint64_t>(length);
  for (size_t i = last + 1 - static_cast<size_t>(length); i <= last; ++i) {
    hash = splitmix64(hash, static_cast<uint64_t>(tokens[i]));
  }
  return hash;
}

// Returns the length of the common suffix of the text and of the text up to `place`, at most `cap`.
int64_t common_end(const std::vector<int32_t>& tokens, int64_t place, int64_t cap) {
  auto last = static_cast<int64_t>(tokens.size()) - 1;
  int64_t n = 0;
  while (n < cap && tokens[static_cast<size_t>(place - n)] == tokens[static_cast<size_t>(last - n)])
    ++n;
  return n;
}

}  // namespace

void Repetitions::add(const SamplingParams& params, const std::vector<int32_t>& tokens,
                      size_t index) {
  bool breaks = params.dry_breakers.count(tokens[index]) != 0;
  since_breaker_ = breaks ? 0 : since_breaker_ + 1;
  earlier_.push_back(-1);
  if (since_breaker_ < run_length(params)) return;
  uint64_t hash = hash_of_run(tokens, index, run_length(params));
  auto place = static_cast<int32_t>(index);
  auto [entry, is_new] = newest_.try_emplace(hash, place);
  if (!is_new) earlier_.back() = std::exchange(entry->second, place);
}

std::unordered_map<int32_t, int64_t> Repetitions::find(const SamplingParams& params,
                                                       const std::vector<int32_t>& tokens) const {
  std::unordered_map<int32_t, int64_t> longest;
  if (earlier_.empty()) return longest;
  int64_t cap = std::min<int64_t>(since_breaker_, params.dry_allowed_length + kExtension);
  auto size = static_cast<int64_t>(tokens.size());
  int64_t start = params.dry_range == 0 ? 0 : std::max<int64_t>(0, size - params.dry_range);
  int64_t place = earlier_.back();
  for (int64_t i = 0; i < kPlaces && place >= start; ++i) {
    int64_t n = common_end(tokens, place, std::min(cap, place - start + 1));
    int32_t next = tokens[static_cast<size_t>(place + 1)];
    if (n >= params.dry_allowed_length && params.dry_breakers.count(next) == 0) {
      int64_t& known = longest[next];
      known = std::max(known, n);
    }
    place = earlier_[static_cast<size_t>(place)];
  }
  return longest;
}

float repetition_cost(const SamplingParams& params, int64_t n) {
  double factor = power(static_cast<double>(params.dry_base), n - params.dry_allowed_length);
  double cost = static_cast<double>(params.dry_multiplier) * factor;
  return static_cast<float>(std::min(cost, kGreatestCost));
}

}  // namespace wherry
