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

// The quantities that determine a step's time.
struct StepWork {
  int64_t rows = 0;
  int64_t context = 0;   // tokens of the step's sequences in the KV cache after the step
  int64_t attended = 0;  // sum over the step's rows of the tokens that each row attends to

  // Adds a sequence with `count` rows, the first of them at `position`.
  void add(int64_t position, int64_t count) {
    rows += count;
    context += position + count;
    attended += attended_by(position, count);
  }
  // Adds further rows of a sequence whose rows before `position` were added.
  void extend(int64_t position, int64_t count) {
    rows += count;
    context += count;
    attended += attended_by(position, count);
  }

 private:
  static int64_t attended_by(int64_t position, int64_t count) {
    return count * (position + 1) + count * (count - 1) / 2;
  }
};

// Predicts step times by the model seconds = step + row * rows + token * context + pair * attended,
// with coefficients that are not negative. They stand for the fixed cost (weights are read once),
// for a row, for reading a sequence's keys and values, and for attention. They are fitted to means
// of measured times, one mean for each number of rows and context, so that a thousand equal steps
// do not outweigh a different one. Measurements may not separate the four; among fits that explain
// them equally well, the one that predicts the largest slowdown counts. Kernels process rows in
// tiles, so 6 rows may take longer than 8: a measured number of rows has its own correction factor.
class StepTime {
 public:
  void record(const StepWork& work, double seconds);
  // Returns the predicted seconds; 0 if no step was recorded.
  double predict(const StepWork& work) const;
  // Returns the largest prediction among the fits in seconds; 0 if no step was recorded.
  double longest(const StepWork& work) const;
  // Returns the largest ratio of the seconds of `with`, which has more rows, to the seconds of
  // `work`; 0 if no step was recorded.
  double slowdown(const StepWork& work, const StepWork& with) const;
  // Returns the mean relative error of the predictions for the last steps.
  double deviation() const { return deviation_; }
  // Returns the seconds that one more row with `context` tokens adds; 0 if not known.
  double row_seconds(double context) const;  // assumes that the sequence has other rows in the step

 private:
  static constexpr size_t kTerms = 4;
  using Terms = std::array<double, kTerms>;  // coefficients of 1, rows, context and attended
  using Key = std::pair<int, int>;           // number of rows; logarithm of the mean context
  struct Mean {
    Terms work;
    double seconds;
    uint64_t last;  // number of the last step recorded in this mean
  };
  struct Fit {
    Terms seconds;
    double error;  // mean square of the fit's relative errors
  };

  static Key key_of(const StepWork& work);
  static Terms terms_of(const StepWork& work);
  static double value(const Terms& fit, const Terms& work);
  void forget_oldest();
  void fit() const;
  void solve(const std::array<Terms, kTerms>& products, const Terms& sums, unsigned used) const;
  // Returns the nearest mean with the same number of rows, or null.
  const Mean* nearest(const StepWork& work) const;
  static double predict(const Fit& fit, const StepWork& work, const Mean* nearest);

  std::map<Key, Mean> means_;
  uint64_t recorded_ = 0;
  double deviation_ = 1;           // the value before any step was recorded
  mutable std::vector<Fit> fits_;  // fits that explain the means equally well, the best first
  mutable bool fitted_ = false;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_
