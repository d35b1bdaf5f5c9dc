#include "sampling/draw.h"

#include <algorithm>
#include <utility>

#include "sampling/softmax.h"

namespace wherry {

Drawn Draw::from(Truncation& kept, double u) {
  return kept.has_tail() ? from_head_and_tail(kept, u) : from_ranks(kept, u);
}

Drawn Draw::from_ranks(Truncation& kept, double u) {
  double mass = kept.mass(), rest = u * mass, last = 0;
  int64_t chosen = kept.begin();
  for (int64_t i = kept.begin(); i < kept.end(); ++i) {
    double w = kept.weight(i);
    if (w > 0) chosen = i, last = w;
    if (rest < w) break;
    rest -= w;
  }
  return {kept.id(chosen), last / mass};
}

Drawn Draw::from_head_and_tail(Truncation& kept, double u) {
  const int64_t head_end = std::min(kept.vocab(), Ranking::kFirst);
  double head = 0;
  for (int64_t i = kept.begin(); i < head_end; ++i) head += kept.weight(i);
  // The sum of the whole row is exact enough for most draws, but too coarse to subtract from.
  bool excluded = kept.begin() > 0;
  double tail = excluded ? weigh_tail(kept) : 0;
  double mass = excluded ? head + tail : std::max(kept.mass(), head), rest = u * mass;
  for (int64_t i = kept.begin(); i < head_end; ++i) {
    double w = kept.weight(i);
    if (rest < w) return {kept.id(i), w / mass};
    rest -= w;
  }
  if (!excluded) {
    tail = weigh_tail(kept);
    rest *= mass > head ? tail / (mass - head) : 0;
  }
  if (tail == 0) {  // rounding went past the last token with a positive weight
    int64_t last = head_end - 1;
    while (last > kept.begin() && kept.weight(last) == 0) --last;
    return {kept.id(last), kept.weight(last) / mass};
  }
  Drawn drawn = from_tail(kept, rest);
  return {drawn.token, drawn.probability / mass};
}

// Computes the weights of the tail. The sum of a block without head tokens is the row's own block
// sum.
double Draw::weigh_tail(Truncation& kept) {
  elsewhere_.clear();
  int64_t count = std::max(kept.begin(), std::min(kept.vocab(), Ranking::kFirst));
  for (int64_t i = 0; i < count; ++i) elsewhere_.push_back(kept.id(i));
  std::sort(elsewhere_.begin(), elsewhere_.end());
  block_sums_ = kept.block_sums();
  size_t last = block_sums_.size();
  for (int32_t id : elsewhere_) {
    auto block = static_cast<size_t>(id / kSoftmaxBlock);
    if (std::exchange(last, block) == block) continue;
    weigh_block(kept, block);
    block_sums_[block] = sum(weights_.data(), static_cast<int64_t>(weights_.size()));
  }
  double total = 0;
  for (double block : block_sums_) total += block;
  return total;
}

void Draw::weigh_block(Truncation& kept, size_t block) {
  int64_t start = static_cast<int64_t>(block) * kSoftmaxBlock;
  int64_t count = std::min(kSoftmaxBlock, kept.vocab() - start);
  weights_.resize(static_cast<size_t>(count));
  exponentials(kept.x() + start, count, kept.maximum(), kept.scale(), weights_.data(), nullptr);
  auto id = std::lower_bound(elsewhere_.begin(), elsewhere_.end(), start);
  for (; id != elsewhere_.end() && *id < start + count; ++id) {
    weights_[static_cast<size_t>(*id - start)] = 0;
  }
}

// Draws from the tail; returns the token with its weight in place of the probability.
Drawn Draw::from_tail(Truncation& kept, double rest) {
  size_t b = 0;
  while (b + 1 < block_sums_.size() && rest >= block_sums_[b]) rest -= block_sums_[b++];
  while (block_sums_[b] <= 0) --b;  // rounding went past the last block with a positive weight
  weigh_block(kept, b);
  size_t chosen = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    auto weight = static_cast<double>(weights_[i]);
    if (weight > 0) chosen = i;
    if (rest < weight) break;
    rest -= weight;
  }
  auto first = static_cast<int64_t>(b) * kSoftmaxBlock;
  return {static_cast<int32_t>(first) + static_cast<int32_t>(chosen),
          static_cast<double>(weights_[chosen])};
}

}  // namespace wherry
