// Finds a row's most likely tokens, as many as the caller needs.
#ifndef WHERRY_ENGINE_SAMPLING_RANKING_H_
#define WHERRY_ENGINE_SAMPLING_RANKING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry {

// Finds the ids of the k largest elements of x [n] (all if n is less), descending; of equal ones
// the lower id first.
void rank(const float* x, int64_t n, int64_t k, std::vector<int32_t>& ids);

// Ranks a row lazily: finds more of its most likely tokens on demand. Reuses its memory for the
// next row.
class Ranking {
 public:
  static constexpr int64_t kFirst = 64;  // number of ranks found first; enough for most top-p sets
  static constexpr int64_t kWidening = 8;

  // Starts a new row. x [n] must outlive its use.
  void start(const float* x, int64_t n);
  // Finds at least k ranks at once; k <= n.
  void reach(int64_t k);
  // Finds the token of this rank (from 0); returns false if there is none.
  bool has(int64_t position) {
    return position < static_cast<int64_t>(ids_.size()) || widen(position + 1);
  }
  // Returns the token of this rank; has(position) must have returned true.
  int32_t id(int64_t position) const { return ids_[static_cast<size_t>(position)]; }
  // Returns how many ranks are known so far.
  int64_t known() const { return static_cast<int64_t>(ids_.size()); }

 private:
  bool widen(int64_t k);

  const float* x_ = nullptr;
  int64_t n_ = 0;
  std::vector<int32_t> ids_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_RANKING_H_
