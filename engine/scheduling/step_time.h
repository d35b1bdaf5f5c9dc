// How long a step takes, learned from those that were run.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace wherry {

// What a step's time depends on.
struct StepWork {
  int64_t rows = 0;
  int64_t held = 0;  // tokens that its sequences have then
  int64_t seen = 0;  // tokens that its rows attend to: the sum of their positions + 1

  // A sequence with `count` rows, the first at `position`.
  void add(int64_t position, int64_t count) {
    rows += count;
    held += position + count;
    seen += count * (position + 1) + count * (count - 1) / 2;
  }
};

// A step takes step + row * rows + token * held + pair * seen, none of them negative: what it costs
// whatever is in it (weights are read once), what a row costs, what it costs that a sequence's keys
// and values are read, and what attention computes with them. These are fitted to means of what was
// seen, kept by number of rows and by context, so that a thousand equal steps do not drive out the
// one that was different. What was seen may not tell the four apart; of those that explain it
// equally well the one counts that finds the largest slowdown. Kernels take rows in
// tiles, so that 6 may take longer than 8: numbers of rows that were seen have a factor of their
// own.
class StepTime {
 public:
  void record(const StepWork& work, double seconds);
  // Seconds; 0: nothing was seen.
  double predict(const StepWork& work) const;
  // The most seconds that what was seen allows to expect; 0: nothing was seen.
  double longest(const StepWork& work) const;
  // How many times the seconds of `work` a step of `with` takes, which holds more; 0: nothing was
  // seen.
  double slowdown(const StepWork& work, const StepWork& with) const;
  // By how much of what was expected the last steps took more or less, on average.
  double deviation() const { return deviation_; }
  // What a further row of `context` tokens adds, as far as that is known; 0: it is not.
  double row_seconds(double context) const;  // of a sequence that has others

 private:
  static constexpr size_t kTerms = 4;
  using Terms = std::array<double, kTerms>;  // of 1, rows, held and seen
  using Key = std::pair<int, int>;           // number of rows; logarithm of the mean context
  struct Mean {
    Terms work;
    double seconds;
    uint64_t last;  // when it was recorded
  };
  struct Fit {
    Terms seconds;
    double error;  // mean square of the relative ones
  };

  static Key key_of(const StepWork& work);
  static Terms terms_of(const StepWork& work);
  static double value(const Terms& fit, const Terms& work);
  void forget_oldest();
  void fit() const;
  void solve(const std::array<Terms, kTerms>& products, const Terms& sums, unsigned used) const;
  const Mean* nearest(const StepWork& work) const;  // with as many rows; null: there is none
  static double predict(const Fit& fit, const StepWork& work, const Mean* nearest);

  std::map<Key, Mean> means_;
  uint64_t recorded_ = 0;
  double deviation_ = 1;           // nothing is known yet
  mutable std::vector<Fit> fits_;  // that explain the means equally well, the best first
  mutable bool fitted_ = false;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_TIME_H_
