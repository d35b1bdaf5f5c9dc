// How long a step takes, learned from those that were run.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace wherry {

// What a step's time depends on.
struct StepWork {
  int64_t rows = 0;
  int64_t seen = 0;  // tokens that its rows attend to: the sum of their positions + 1

  // `count` further rows of one sequence, the first at `position`.
  void add(int64_t position, int64_t count) {
    rows += count;
    seen += count * (position + 1) + count * (count - 1) / 2;
  }
};

// A step takes step + row * rows + token * seen, none of them negative: what a step costs whatever
// is in it (weights are read once), what a row costs, and what its attention does. These are fitted
// to means of what was seen, kept by number of rows and by context, so that a thousand equal steps
// do not drive out the one that was different. What was seen may not tell the three apart; of those
// that explain it equally well the one counts that predicts the longest step. Kernels take rows in
// tiles, so that 6 may take longer than 8: numbers of rows that were seen have a factor of their
// own.
class StepTime {
 public:
  void record(const StepWork& work, double seconds);
  // Seconds; 0: nothing was seen.
  double predict(const StepWork& work) const;
  // What a further row of `context` tokens adds, as far as that is known; 0: it is not.
  double row_seconds(double context) const;

 private:
  static constexpr size_t kTerms = 3;
  using Terms = std::array<double, kTerms>;  // of 1, rows and seen
  using Key = std::pair<int, int>;           // number of rows; logarithm of the mean context
  struct Mean {
    double rows, seen, seconds;
    uint64_t last;  // when it was recorded
  };
  struct Fit {
    Terms seconds;
    double error;  // mean square of the relative ones
  };

  static Key key_of(const StepWork& work);
  static double value(const Terms& fit, double rows, double seen);
  void forget_oldest();
  void fit() const;
  void solve(const std::array<Terms, kTerms>& products, const Terms& sums, unsigned used) const;
  double longest(double rows, double seen) const;

  std::map<Key, Mean> means_;
  uint64_t recorded_ = 0;
  mutable std::vector<Fit> fits_;  // that explain the means equally well, the best first
  mutable bool fitted_ = false;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_
