#include "sampling/ranking.h"

#include <algorithm>
#include <numeric>

#include "sampling/softmax.h"

namespace wherry {

void rank(const float* x, int64_t n, int64_t k, std::vector<int32_t>& ids) {
  auto before = [x](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); };
  k = std::min(k, n);
  bool scan = k < std::min<int64_t>(n / 4, 1024);  // else a heap would be rebuilt too often
  ids.resize(static_cast<size_t>(scan ? k : n));
  std::iota(ids.begin(), ids.end(), 0);
  if (!scan) {
    if (k < n) std::nth_element(ids.begin(), ids.begin() + k, ids.end(), before);
    ids.resize(static_cast<size_t>(k));
    std::sort(ids.begin(), ids.end(), before);
    return;
  }
  if (k == 0) return;
  constexpr int64_t kBlock = 256;  // looked at as a whole: most hold nothing that is large enough
  std::make_heap(ids.begin(), ids.end(), before);  // the least likely one is in front
  for (int64_t start = k; start < n; start += kBlock) {
    int64_t end = std::min(start + kBlock, n);
    if (!any_above(x + start, end - start, x[ids.front()])) continue;
    for (int64_t i = start; i < end; ++i) {
      if (!(x[i] > x[ids.front()])) continue;  // of equals the lower id, which came first, stays
      std::pop_heap(ids.begin(), ids.end(), before);
      ids.back() = static_cast<int32_t>(i);
      std::push_heap(ids.begin(), ids.end(), before);
    }
  }
  std::sort_heap(ids.begin(), ids.end(), before);
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
  int64_t wanted = kFirst;
  while (wanted < k) wanted *= kWidening;
  rank(x_, n_, wanted, ids_);
  return true;
}

}  // namespace wherry
