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
  // max_seconds: no step may become longer than this through prompts' rows, whoever runs, as far as
  // that is known; 0: there is no such bound. Systems and browsers take a GPU away from who keeps
  // it for long, and a page is not drawn meanwhile.
  explicit StepBudget(double max_slowdown, double max_seconds = 0)
      : max_slowdown_(max_slowdown), max_seconds_(max_seconds) {}

  // What a step was, and took.
  void record(const StepWork& work, double seconds);

  // Rows of a prompt from `position` on, at most `most`, that may join a step of `work`, in which
  // `running` is of running requests, while so many prompts want to. At least one if nothing but
  // these is in it: a prompt always advances. At least a few if nothing at all is in it, and as
  // many as take no longer than these: a row of its own costs as much as several.
  int64_t prompt_rows(const StepWork& running, const StepWork& work, int64_t prompts,
                      int64_t position, int64_t most) const;

  // A step of a draft model.
  void record_draft(double seconds);

  // What draft tokens cost while such requests run.
  DraftCost draft_cost(const StepWork& running) const;

 private:
  double margin() const;  // share of the allowed time that is spent
  int64_t rows_in_time(const StepWork& work, int64_t position, int64_t most) const;

  double max_slowdown_;
  double max_seconds_;
  StepTime time_;
  int64_t most_rows_ = 0;     // of a step that was recorded
  double draft_seconds_ = 0;  // of a draft model's step; 0: there is none
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_
