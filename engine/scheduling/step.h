// One planned step, from its draft tokens to its output: what the stepping thread does without the
// engine's lock. The requests of a plan are its own meanwhile.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "sampling/row_sampler.h"
#include "scheduling/scheduler.h"
#include "scheduling/step_budget.h"
#include "speculation/draft_model.h"

namespace wherry {

// A token of an output.
struct Sampled {
  Sample sample;
  wherry_finish finish;
};

// What came of one planned entry.
struct Outcome {
  std::vector<Sample> prompt;    // logprobs of tokens of the prompt, in order
  std::vector<Sampled> samples;  // tokens of the output: its request has them already
  int64_t accepted = 0;
  std::vector<float> embedding;
  std::string error;  // of this request alone
};

struct StepResult {
  std::vector<Outcome> outcomes;  // one for each planned entry
  std::string failure;            // of the whole step; then there are no outcomes
  double collect_seconds = 0, sample_seconds = 0;
  std::vector<int32_t> chosen;  // by the device, of each row of the results, where it chooses
  RowCounts rows;               // that gave tokens
  uint64_t bytes_read = 0;      // of results, from a device
  GraphCounts graphs;           // so far
  std::string chains_given_up;  // see Session
};

// The text of the exception that is being handled.
std::string current_reason();

class Stepper {
 public:
  Stepper(std::unique_ptr<Session> session, std::unique_ptr<DraftModel> draft, StepBudget& budget,
          size_t groups);

  // Makes the plan's draft tokens, launches its step, and does what can be done while the device
  // computes. Sets the `error` of entries that fail alone, and times.
  void launch(Plan& plan);
  double mask_seconds() const { return mask_seconds_; }  // of grammars, after the last launch

  // Whether collect() would find every row that it reads; asks for those that it would not.
  bool ready(Plan& plan);

  StepResult collect(Plan& plan);

  void use(DiskTier& disk) { disk_ = &disk; }

  Session& session() { return *session_; }
  DraftModel* draft() { return draft_.get(); }  // null: there is none

 private:
  void apply(const StateChanges& changes);
  void restore(Plan& plan);
  void draft(Plan& plan);
  void run_draft_model(std::vector<PlannedRows*>& entries);
  void ask_masks(Plan& plan);
  void ask_candidates(Plan& plan, Batch& batch) const;
  bool ask_rows(const PlannedRows& entry, const Rows& rows, int64_t end);
  void collect_outcomes(Plan& plan, StepResult& result);
  Outcome outcome_of(PlannedRows& entry, const Rows& results, int64_t& row);
  void sample_outputs(PlannedRows& entry, const Rows& results, int64_t row, Outcome& outcome);

  const std::unique_ptr<Session> session_;
  const std::unique_ptr<DraftModel> draft_;
  RowSampler sampler_;
  StepBudget& budget_;
  const size_t groups_;
  DiskTier* disk_ = nullptr;
  double mask_seconds_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_H_
