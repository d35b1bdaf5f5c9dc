#include "sampling/ranking.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "sampling/softmax.h"

namespace wherry {

namespace {

// Finds the ids of a superset of the k largest elements of x [n]. At least k groups have a maximum
// at or above the k-th largest group maximum, so the k largest elements are at or above it, too,
// and rarely many others are. Groups below it are skipped as a whole.
void likely(const float* x, int64_t n, int64_t k, std::vector<int32_t>& ids) {
  std::vector<float> maxima(static_cast<size_t>(group_count(n)));
  group_maxima(x, n, maxima.data());
  std::vector<float> ordered = maxima;
  std::nth_element(ordered.begin(), ordered.begin() + (k - 1), ordered.end(), std::greater<>());
  const float least = ordered[static_cast<size_t>(k - 1)];
  ids.clear();
  for (size_t group = 0; group < maxima.size(); ++group) {
    if (maxima[group] < least) continue;
    auto g = static_cast<int64_t>(group);
    int64_t start = g / kGroupColumns * kGroupBlock;
    for (int64_t i = start + g % kGroupColumns; i < std::min(start + kGroupBlock, n);
         i += kGroupColumns) {
      if (x[i] >= least) ids.push_back(static_cast<int32_t>(i));
    }
  }
}

}  // namespace

void rank(const float* x, int64_t n, int64_t k, std::vector<int32_t>& ids) {
  auto before = [x](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); };
  k = std::min(k, n);
  if (k > 0 && k <= group_count(n)) {
    likely(x, n, k, ids);
  } else {
    ids.resize(static_cast<size_t>(k > 0 ? n : 0));
    std::iota(ids.begin(), ids.end(), 0);
  }
  auto end = ids.begin() + k;
  if (end != ids.end()) std::nth_element(ids.begin(), end, ids.end(), before);
  ids.erase(end, ids.end());
  std::sort(ids.begin(), ids.end(), before);
}

void Ranking::start(const float* x, int64_t n) {
  x_ = x;
  n_ = n;
  ids_.clear();
}

void Ranking::reach(int64_t k) {
  if (k > known()) rank(x_, n_, std::max(k, kFirst), ids_);
}

bool Ranking::widen(int64_t k) {
  if (k > n_) return false;
  int64_t rounded = kFirst;
  while (rounded < k) rounded *= kWidening;
  rank(x_, n_, rounded, ids_);
  return true;
}

}  // namespace wherry
