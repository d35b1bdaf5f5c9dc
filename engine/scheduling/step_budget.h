// Limits the prefill rows of a step by measured time, so that running requests keep their speed.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_

#include <cstdint>

#include "scheduling/step_time.h"
#include "speculation/draft_length.h"

namespace wherry {

class StepBudget {
 public:
  // max_slowdown: the factor by which prefill rows may lengthen a step with running requests. If
  // more prompts wait than requests run, they may lengthen it more: each prompt and each running
  // request has the same share of the time. Otherwise few requests would ever run together, and
  // steps are cheap only with large batches.
  // max_seconds: prefill rows may not lengthen any step beyond this, as far as times are known; 0:
  // no limit. Operating systems and browsers reset a GPU that is busy for long, and a page does not
  // redraw during a step.
  explicit StepBudget(double max_slowdown, double max_seconds = 0)
      : max_slowdown_(max_slowdown), max_seconds_(max_seconds) {}

  // Records the work and the seconds of a completed step.
  void record(const StepWork& work, double seconds);

  // Returns how many rows of a prompt, from `position` on and at most `most`, may join a step of
  // `work` (`running`: the part of running requests) while `prompts` prompts wait. The result is at
  // least 1 if the step has no other prefill rows, so prompts always advance, and at least a few in
  // an empty step, where several rows take as long as one.
  int64_t prompt_rows(const StepWork& running, const StepWork& work, int64_t prompts,
                      int64_t position, int64_t most) const;

  // Records the seconds of a step that computed features of an image.
  void record_image(double seconds);
  // Whether an image may be computed while `running` requests run and `prompts` wait: since the
  // last one, steps of running requests took their share of the time, by the same rule as prompts.
  bool may_see(int64_t running, int64_t prompts) const;

  // Returns the tokens that a request could have got in this time, alone; 0 if that is not known.
  int64_t tokens_in(double seconds) const;

  // Records the seconds of one draft-model step.
  void record_draft(double seconds);

  // Returns what draft tokens cost while requests with this work run.
  DraftCost draft_cost(const StepWork& running) const;

 private:
  double part_of_others(int64_t running, int64_t prompts) const;
  double margin() const;  // share of the allowed time to use
  int64_t rows_in_time(const StepWork& work, int64_t position, int64_t most) const;

  double max_slowdown_;
  double max_seconds_;
  StepTime time_;
  int64_t most_rows_ = 0;           // largest number of rows in a recorded step
  double image_seconds_ = 0;        // of the last step that computed an image
  double seconds_since_image_ = 0;  // of the steps recorded since
  double draft_seconds_ = 0;  // mean seconds of a draft-model step; 0 if there is no draft model
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_BUDGET_H_
