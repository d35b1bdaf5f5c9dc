// How much of a step a prompt may take while others wait for their next token, by measured time.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_

#include <cstdint>

#include "scheduling/step_time.h"
#include "speculation/draft_length.h"

namespace wherry {

class StepBudget {
 public:
  // A step that holds running requests may become longer by this factor through prompts' rows.
  // Where more prompts wait than requests run, by more: each of both has the same share of the
  // time. Else few would run at once however many wait, and it is the others' rows that make a step
  // cheap.
  explicit StepBudget(double max_slowdown) : max_slowdown_(max_slowdown) {}

  // What a step was, and took.
  void record(const StepWork& work, double seconds) { time_.record(work, seconds); }

  // Rows of a prompt from `position` on, at most `most`, that may join a step of `work`, in which
  // `running` is of running requests, while so many prompts want to. At least one if nothing but
  // these is in it: a prompt always gets on.
  int64_t prompt_rows(const StepWork& running, const StepWork& work, int64_t prompts,
                      int64_t position, int64_t most) const;

  // A step of a draft model.
  void record_draft(double seconds);

  // What guessing costs beside such requests.
  GuessCost guess_cost(const StepWork& running) const;

 private:
  double max_slowdown_;
  StepTime time_;
  double draft_seconds_ = 0;  // of a draft model's step; 0: there is none
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_
