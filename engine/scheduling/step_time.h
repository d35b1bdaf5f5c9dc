// Predicts how long a step takes from the times of earlier steps.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace wherry {

// The quantities that a step's time depends on.
struct StepWork {
  int64_t rows = 0;
  int64_t context = 0;   // tokens of its sequences in the KV cache, after the step
  int64_t attended = 0;  // sum over its rows of the tokens that each attends to

  // A sequence with `count` rows, the first at `position`.
  void add(int64_t position, int64_t count) {
    rows += count;
    context += position + count;
    attended += count * (position + 1) + count * (count - 1) / 2;
  }
};

// The model: seconds = step + row * rows + token * context + pair * attended, with coefficients
// that are not negative. They stand for the fixed cost (weights are read once), for a row, for
// reading a sequence's keys and values, and for attention. They are fitted to means of measured
// times, one mean for each number of rows and context, so that a thousand equal steps do not
// outweigh a different one. Measurements may not separate the four; among fits that explain them
// equally well, the one that predicts the largest slowdown counts. Kernels take rows in tiles, so 6
// rows may take longer than 8: a measured number of rows has its own correction factor.
class StepTime {
 public:
  void record(const StepWork& work, double seconds);
  // Seconds; 0: no step was recorded.
  double predict(const StepWork& work) const;
  // The largest prediction among the fits, seconds; 0: no step was recorded.
  double longest(const StepWork& work) const;
  // The largest ratio of the seconds of `with`, which has more rows, to those of `work`; 0: no step
  // was recorded.
  double slowdown(const StepWork& work, const StepWork& with) const;
  // The mean relative error of the predictions for the last steps.
  double deviation() const { return deviation_; }
  // Seconds that one more row with `context` tokens adds; 0: not known.
  double row_seconds(double context) const;  // the sequence has other rows in the step

 private:
  static constexpr size_t kTerms = 4;
  using Terms = std::array<double, kTerms>;  // coefficients of 1, rows, context, attended
  using Key = std::pair<int, int>;           // number of rows; logarithm of the mean context
  struct Mean {
    Terms work;
    double seconds;
    uint64_t last;  // the number of the last step recorded here
  };
  struct Fit {
    Terms seconds;
    double error;  // mean square of relative errors
  };

  static Key key_of(const StepWork& work);
  static Terms terms_of(const StepWork& work);
  static double value(const Terms& fit, const Terms& work);
  void forget_oldest();
  void fit() const;
  void solve(const std::array<Terms, kTerms>& products, const Terms& sums, unsigned used) const;
  const Mean* nearest(const StepWork& work) const;  // with the same number of rows, or null
  static double predict(const Fit& fit, const StepWork& work, const Mean* nearest);

  std::map<Key, Mean> means_;
  uint64_t recorded_ = 0;
  double deviation_ = 1;           // before any step
  mutable std::vector<Fit> fits_;  // fits that explain the means equally well, the best first
  mutable bool fitted_ = false;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_
