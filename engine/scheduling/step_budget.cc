#include "scheduling/step_budget.h"

#include <algorithm>

namespace wherry {

namespace {

constexpr double kMargin = 0.8;       // share of the allowed time to use if step times vary
constexpr double kMostMargin = 0.97;  // share of the allowed time to use if step times do not vary
constexpr double kDeviations = 2;     // number of mean deviations to allow for
// If a prediction exceeds the allowed time by this factor, larger numbers of rows cannot fit.
constexpr double kFar = 1.5;
constexpr double kOldDraft = 0.75;   // share of the old value in the moving average of draft times
constexpr double kLeastPart = 0.05;  // of the time, for images, whatever max_slowdown is
constexpr double kCostUnknown = 0.1;
constexpr int64_t kFirstRows = 64;  // prefill rows allowed before any step was timed
constexpr int64_t kLeastRows = 8;   // least prefill rows in a step without other rows
// A step at most this factor longer than one of kLeastRows rows counts as not slower.
constexpr double kNotSlower = 1.1;

}  // namespace

// Returns the largest number of rows that fits; a smaller number may not fit, because StepTime is
// not monotonic (tiles).
int64_t StepBudget::prompt_rows(const StepWork& running, const StepWork& work, int64_t prompts,
                                int64_t position, int64_t most) const {
  const int64_t least = std::min<int64_t>(work.rows == running.rows ? 1 : 0, most);
  most = std::max(least, rows_in_time(work, position, most));
  if (running.rows == 0) return most;
  const double allowed = (1 + part_of_others(running.rows, prompts)) * margin();
  int64_t fit = least;
  for (int64_t rows = 1; rows <= most; ++rows) {
    StepWork with = work;
    with.add(position, rows);
    double slowdown = time_.slowdown(running, with);
    if (slowdown == 0 || slowdown > kFar * allowed) break;
    if (slowdown <= allowed) fit = rows;
  }
  return fit;
}

// Returns what others may take of the time of running requests, as a part of that time.
double StepBudget::part_of_others(int64_t running, int64_t prompts) const {
  const double share = static_cast<double>(prompts) / static_cast<double>(running);
  return (max_slowdown_ - 1) * std::max(1.0, share);
}

void StepBudget::record_image(double seconds) {
  image_seconds_ = seconds;
  seconds_since_image_ = 0;
}

bool StepBudget::may_see(int64_t running, int64_t prompts) const {
  if (running == 0) return true;
  const double part = std::max(kLeastPart, part_of_others(running, prompts));
  return image_seconds_ <= part * seconds_since_image_;
}

int64_t StepBudget::tokens_in(double seconds) const {
  StepWork one;
  one.add(0, 1);
  const double step = time_.predict(one);
  return step > 0 ? static_cast<int64_t>(seconds / step) : 0;
}

double StepBudget::margin() const {
  return std::min(kMostMargin, std::max(kMargin, 1 - kDeviations * time_.deviation()));
}

// Returns the number of rows that max_seconds allows.
int64_t StepBudget::rows_in_time(const StepWork& work, int64_t position, int64_t most) const {
  if (max_seconds_ == 0) return most;
  int64_t fit = work.rows == 0 ? std::min(kLeastRows, most) : 0;
  StepWork least = work;
  least.add(position, fit);
  for (int64_t rows = fit + 1; rows <= most; ++rows) {
    StepWork with = work;
    with.add(position, rows);
    double seconds = time_.longest(with);
    if (seconds == 0) return std::min(std::max<int64_t>(kFirstRows - work.rows, 0), most);
    double share = seconds / max_seconds_;
    // The step always has kLeastRows rows, and more if they take no longer.
    if (work.rows == 0 && rows <= 2 * most_rows_)
      share = std::min(share, time_.slowdown(least, with) / kNotSlower);
    if (share > kFar) break;
    if (share <= 1) fit = rows;
  }
  return fit;
}

void StepBudget::record(const StepWork& work, double seconds) {
  most_rows_ = std::max(most_rows_, work.rows);
  time_.record(work, seconds);
  seconds_since_image_ += seconds;
}

void StepBudget::record_draft(double seconds) {
  draft_seconds_ =
      draft_seconds_ == 0 ? seconds : kOldDraft * draft_seconds_ + (1 - kOldDraft) * seconds;
}

DraftCost StepBudget::draft_cost(const StepWork& running) const {
  DraftCost cost{kCostUnknown, 0};
  double seconds = time_.predict(running);
  if (running.rows == 0 || seconds == 0) return cost;
  double row =
      time_.row_seconds(static_cast<double>(running.attended) / static_cast<double>(running.rows));
  if (row > 0) cost.row = row / seconds;
  cost.draft = draft_seconds_ / seconds;
  return cost;
}

}  // namespace wherry
