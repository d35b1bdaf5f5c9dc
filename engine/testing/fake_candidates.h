// Computes a row's candidates on the host as a device's kernel would: with the largest allowed
// error of the sums, and sometimes without any candidates.
#ifndef WHERRY_ENGINE_TESTING_FAKE_CANDIDATES_H_
#define WHERRY_ENGINE_TESTING_FAKE_CANDIDATES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/ranking.h"
#include "sampling/rng.h"
#include "sampling/softmax.h"
#include "testing/fake_model.h"

namespace wherry {

class FakeCandidates {
 public:
  // Takes options.candidates candidates of x [n]. scale: 0 for no candidates.
  FakeCandidates(const float* x, int64_t n, const FakeOptions& options, float scale)
      : vocab_(n), error_(options.error) {
    rank(x, n, options.candidates, ids_);
    for (int32_t id : ids_) logits_.push_back(x[id]);
    // The error is a function of the row, so that it does not depend on the batch.
    auto seed = static_cast<uint64_t>(1e6 * std::fabs(static_cast<double>(x[0])));
    RowMaximum best = row_maximum(x, n);
    count_ = best.valid && uniform(seed, 1) > 0.02 ? static_cast<int64_t>(ids_.size()) : 0;
    double wrong = 1 + error_ * (2 * uniform(seed, 0) - 1);
    for (int64_t i = 0; i < n; ++i) {
      double distance = static_cast<double>(x[i] - best.value);
      total_ += wrong * std::exp(distance);
      scaled_ += wrong * std::exp(distance * static_cast<double>(scale));
    }
  }

  Candidates view() const {
    return {ids_.data(), logits_.data(), count_, vocab_, total_, scaled_, error_};
  }
  uint64_t bytes() const { return 8 * ids_.size() + 16; }

 private:
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
  int64_t vocab_, count_ = 0;
  double total_ = 0, scaled_ = 0, error_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_CANDIDATES_H_
