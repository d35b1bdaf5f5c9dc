// How much of a step a prompt may take while others wait for their next token, by measured time.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_

#include <cstdint>

#include "speculation/draft_length.h"

namespace wherry {

// Learns from steps what one takes without prompts, and what a row adds.
class StepBudget {
 public:
  // A step that holds running requests may become longer by this factor through prompts' rows.
  explicit StepBudget(double max_slowdown) : max_slowdown_(max_slowdown) {}

  // A step of `sequences` running requests, and so many rows beyond one for each of them.
  void record(int64_t sequences, int64_t extra_rows, double seconds);

  // Rows of prompts beside `sequences` running requests, at most `most` and at least a few: a
  // prompt always gets on.
  int64_t prompt_rows(int64_t sequences, int64_t most) const;

  // A step of a draft model.
  void record_draft(double seconds);

  // What guessing costs.
  GuessCost guess_cost() const;

 private:
  double max_slowdown_;
  double decode_seconds_ = 0;  // of a step of running requests alone; 0: none was seen
  double row_seconds_ = 0;     // that a further row adds; 0: none was seen
  double draft_seconds_ = 0;   // of a draft model's step; 0: there is none
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_
