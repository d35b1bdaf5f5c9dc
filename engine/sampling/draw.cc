#include "sampling/draw.h"

#include <algorithm>

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
  // The sum of the whole row is enough for most draws, but too coarse to subtract from.
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
  if (tail == 0) {  // rounding led past the last token with any weight
    int64_t last = head_end - 1;
    while (last > kept.begin() && kept.weight(last) == 0) --last;
    return {kept.id(last), kept.weight(last) / mass};
  }
  int32_t token = from_tail(kept.vocab(), rest);
  return {token, static_cast<double>(weights_[static_cast<size_t>(token)]) / mass};
}

double Draw::weigh_tail(Truncation& kept) {
  weights_.resize(static_cast<size_t>(kept.vocab()));
  exponentials(kept.x(), kept.vocab(), kept.maximum(), kept.scale(), weights_.data(), nullptr);
  int64_t elsewhere = std::max(kept.begin(), std::min(kept.vocab(), Ranking::kFirst));
  for (int64_t i = 0; i < elsewhere; ++i) weights_[static_cast<size_t>(kept.id(i))] = 0;
  block_sums_.clear();
  double total = 0;
  for (int64_t start = 0; start < kept.vocab(); start += kSoftmaxBlock) {
    const float* block = weights_.data() + start;
    block_sums_.push_back(sum(block, std::min(kSoftmaxBlock, kept.vocab() - start)));
    total += block_sums_.back();
  }
  return total;
}

int32_t Draw::from_tail(int64_t vocab, double rest) const {
  size_t b = 0;
  while (b + 1 < block_sums_.size() && rest >= block_sums_[b]) rest -= block_sums_[b++];
  while (block_sums_[b] <= 0) --b;  // rounding led past the last block with any weight
  size_t start = b * static_cast<size_t>(kSoftmaxBlock), chosen = start;
  size_t end = std::min(start + static_cast<size_t>(kSoftmaxBlock), static_cast<size_t>(vocab));
  for (size_t i = start; i < end; ++i) {
    auto weight = static_cast<double>(weights_[i]);
    if (weight > 0) chosen = i;
    if (rest < weight) break;
    rest -= weight;
  }
  return static_cast<int32_t>(chosen);
}

}  // namespace wherry
