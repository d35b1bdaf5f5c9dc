#include "scheduling/step_budget.h"

#include <algorithm>

namespace wherry {

namespace {

constexpr int64_t kFewest = 2;      // rows of prompts in a step, however dear they are
constexpr int64_t kFirst = 16;      // before anything is known
constexpr double kRemember = 0.75;  // share of the old value in a moving average
constexpr double kMargin = 0.85;    // of the allowed time: steps vary
constexpr double kCostUnknown = 0.1;

void learn(double& average, double value) {
  average = average == 0 ? value : kRemember * average + (1 - kRemember) * value;
}

}  // namespace

void StepBudget::record(int64_t sequences, int64_t extra_rows, double seconds) {
  if (sequences > 0 && extra_rows == 0) return learn(decode_seconds_, seconds);
  if (sequences > 0 && decode_seconds_ == 0) return;  // which part is whose is not known
  double own = sequences > 0 ? decode_seconds_ : 0;
  double rest = std::max(seconds - own, 0.02 * seconds);
  if (extra_rows > 0) learn(row_seconds_, rest / static_cast<double>(extra_rows));
}

int64_t StepBudget::prompt_rows(int64_t sequences, int64_t most) const {
  if (sequences == 0) return most;
  if (decode_seconds_ == 0 || row_seconds_ == 0) return std::min(kFirst, most);
  double spare = (max_slowdown_ * kMargin - 1) * decode_seconds_;
  auto rows = static_cast<int64_t>(std::min(spare / row_seconds_, static_cast<double>(most)));
  return std::min(std::max(rows, kFewest), most);
}

void StepBudget::record_draft(double seconds) { learn(draft_seconds_, seconds); }

GuessCost StepBudget::guess_cost() const {
  GuessCost cost{kCostUnknown, 0};
  if (decode_seconds_ == 0) return cost;
  if (row_seconds_ > 0) cost.row = row_seconds_ / decode_seconds_;
  cost.draft = draft_seconds_ / decode_seconds_;
  return cost;
}

}  // namespace wherry
