#include "speculation/draft_length.h"

#include <algorithm>

namespace wherry {

namespace {

constexpr double kRemember = 0.85;  // weight of the old acceptance rate after one more draft token
constexpr int32_t kRetry = 48;      // steps without draft tokens before one is tried again
constexpr int64_t kMost = 16;       // tokens

}  // namespace

int64_t DraftLength::next(int64_t limit, int64_t fallback, const DraftCost& cost) {
  limit = std::min({limit, kMost, requested_ < 0 ? fallback : static_cast<int64_t>(requested_)});
  if (limit <= 0) return 0;
  // With k draft tokens and acceptance rate a, a step gives 1 + a + ... + a^k tokens on average and
  // costs 1 + k (row + draft), and a row of the next step for each token before a rejected one.
  int64_t best = 0;
  double tokens = 1, chance = 1, speed = 1, again = 0;
  for (int64_t k = 1; k <= limit; ++k) {
    again += static_cast<double>(k) * chance * (1 - rate_);
    chance *= rate_;
    tokens += chance;
    const double drafts = static_cast<double>(k) * (cost.row + cost.draft);
    double now = tokens / (1 + drafts + again * cost.again);
    if (now > speed) {
      speed = now;
      best = k;
    }
  }
  if (best == 0 && ++skipped_ >= kRetry) best = 1;
  if (best > 0) skipped_ = 0;
  return best;
}

void DraftLength::record(int64_t drafted, int64_t right) {
  for (int64_t i = 0; i < std::min(drafted, right + 1); ++i) {
    rate_ = kRemember * rate_ + (i < right ? 1 - kRemember : 0);
  }
}

}  // namespace wherry
