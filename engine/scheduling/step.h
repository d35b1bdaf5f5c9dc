// Runs one planned step, from draft tokens to output, on the stepping thread without the engine's
// lock. No other thread touches the plan's requests during that time.
#ifndef WHERRY_ENGINE_SCHEDULING_STEP_H_
#define WHERRY_ENGINE_SCHEDULING_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/row_sampler.h"
#include "scheduling/scheduler.h"
#include "scheduling/step_budget.h"
#include "speculation/drafter.h"

namespace wherry {

// One output token and what the sampler reports about it.
struct Sampled {
  Sample sample;
  wherry_finish finish;
};

// The results of one planned entry.
struct Outcome {
  std::vector<Sample> prompt;    // logprobs of prompt tokens, in order
  std::vector<Sampled> samples;  // output tokens, already appended to the request
  int64_t accepted = 0;
  std::vector<float> embedding;
  std::string error;  // why this request alone failed; empty if it did not
};

struct StepResult {
  std::vector<Outcome> outcomes;  // one outcome for each planned entry
  std::string failure;            // why the whole step failed; there are no outcomes then
  double collect_seconds = 0, sample_seconds = 0;
  // [result rows] tokens that the device drew; empty if the host draws them.
  std::vector<int32_t> chosen;
  RowCounts rows;               // counts of how rows were sampled
  uint64_t bytes_read = 0;      // bytes of results copied from the device
  GraphCounts graphs;           // totals of the session's CUDA graphs
  std::string chains_given_up;  // why launch-ahead ended; see Session
};

// Returns the message of the exception that is being handled.
std::string current_reason();

class Stepper {
 public:
  Stepper(std::unique_ptr<Session> session, std::unique_ptr<Drafter> drafter, StepBudget& budget,
          const BatchShape& shape);

  // Proposes the plan's draft tokens, launches its step, and fills grammar masks while the device
  // computes. Sets the plan's times, and the `error` of entries that fail alone.
  void launch(Plan& plan);
  // Seconds spent on grammar masks in the last launch.
  double mask_seconds() const { return mask_seconds_; }

  // Returns whether every row that collect() reads has arrived; requests the missing rows.
  bool ready(Plan& plan);

  StepResult collect(Plan& plan);

  void use(DiskTier& disk) { disk_ = &disk; }

  Session& session() { return *session_; }
  Drafter* drafter() { return drafter_.get(); }  // null if there is neither draft model nor block

 private:
  void apply(const StateChanges& changes);
  void see(Plan& plan);
  void restore(Plan& plan);
  void draft(Plan& plan);
  void run_drafter(std::vector<PlannedRows*>& entries);
  void save_states(const Plan& plan);
  void fill_masks(Plan& plan);
  void request_candidates(Plan& plan, Batch& batch) const;
  bool request_rows(const PlannedRows& entry, const Rows& rows, int64_t end);
  void collect_outcomes(Plan& plan, StepResult& result);
  Outcome outcome_of(PlannedRows& entry, const Rows& results, int64_t& row);
  void sample_outputs(PlannedRows& entry, const Rows& results, int64_t row, Outcome& outcome);

  const std::unique_ptr<Session> session_;
  const std::unique_ptr<Drafter> drafter_;
  RowSampler sampler_;
  StepBudget& budget_;
  const BatchShape shape_;
  DiskTier* disk_ = nullptr;
  double mask_seconds_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_STEP_H_
