// Plans a step: which rows it computes, which requests are admitted, and which are preempted.
#ifndef WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_
#define WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cache/disk_tier.h"
#include "cache/kv_cache.h"
#include "model/model.h"
#include "scheduling/request.h"
#include "scheduling/step_budget.h"
#include "scheduling/waiting_queue.h"

namespace wherry {

// The requests that are not finished.
struct RequestQueues {
  WaitingQueue waiting;
  std::vector<Request*> active;  // by priority, then arrival
};

// Consecutive rows of one request.
struct PlannedRows {
  PlannedRows(Request* request, int64_t rows) : request(request), rows(rows) {}

  Request* request;                   // null: it ended, or the device drew another token
  int64_t rows;                       // of its pending tokens from `computed` on, or of its source
  int64_t max_draft_tokens = 0;       // limited by free pages and result rows; 0 unless running
  int64_t most_drafts = 0;            // how many of them may be rejected
  std::vector<int32_t> draft_tokens;  // proposed after planning
  bool forced = false;                // the mask forces them: none can be rejected
  std::string error;                  // why the request fails; empty: it continues
  int64_t results = 0;                // how many result rows it has; they follow the plan's order
  bool device_draws = false;          // the device draws its token, so launch-ahead is possible
  int32_t chosen_from = -1;           // result row of the previous step whose token is its input

  // Whether its last row samples a token: all of the request's tokens are computed then.
  bool draws() const { return chosen_from >= 0 || rows == request->pending(); }
  // The index in the output of the token that its first result row samples.
  int64_t next_output() const { return request->output_size() + (chosen_from >= 0 ? 1 : 0); }
};

struct Plan {
  Entry entry = Entry::kForward;
  std::vector<PlannedRows> entries;  // entry s is sequence s of the batch
  StateChanges changes;              // to apply before the step
  std::vector<Request*> restores;    // requests that read pages from disk instead of rows
  double launched = 0;               // when its step was launched
  double launch_seconds = 0;         // seconds of the model's launch

  bool empty() const { return entries.empty() && restores.empty(); }
};

struct SchedulerLimits {
  int64_t max_batch = 0;   // sequences in one step
  int64_t max_rows = 0;    // rows of one step
  int64_t logit_rows = 0;  // result rows of one step
  int64_t max_drafts = 0;  // draft tokens for a request that sets no number
  bool whole = false;      // one step must compute a whole sequence
};

// Running requests have a row in every step, the older ones first; StepBudget limits the prefill
// rows next to them. The scheduler admits a request when the pages of its prompt are free or
// evictable. When pages run out, it preempts the youngest request of the lowest priority, which
// keeps its tokens, and its pages until they are evicted, and resumes later with the same tokens.
// The oldest request of the highest priority always advances, so there is no deadlock.
class Scheduler {
 public:
  // disk: may be null.
  Scheduler(const SchedulerLimits& limits, KvCache& cache, const StepBudget& budget,
            DiskTier* disk = nullptr)
      : limits_(limits), cache_(cache), budget_(budget), disk_(disk) {}

  // An empty plan means that there is nothing to do.
  Plan plan(RequestQueues& queues);

  // Does the part of the next plan that does not depend on the tokens of the step in flight:
  // allocates pages for the next rows, and admits requests without preemption. Calling it is
  // optional and changes no token.
  void prepare(RequestQueues& queues, const Plan& under_way);

  // Launch-ahead: plans the step after the one in flight, with one row for each request that goes
  // on, whose token the device has drawn. Returns an empty plan if that step is not known yet: a
  // waiting request may get rows in it, the host must sample a token (CandidateSampler::scale), or
  // pages are short.
  Plan follow(const RequestQueues& queues, const Plan& under_way);

  uint64_t preemptions() const { return preemptions_; }

 private:
  struct Left {  // what is left of the limits of the planned step
    int64_t rows, results;
    int64_t prompts;         // prompts that are or could be in it
    StepWork running, work;  // of running requests; of all planned rows
  };

  void choose_entry(const RequestQueues& queues);
  bool belongs(const Request& request) const;
  void admit(RequestQueues& queues, bool may_preempt, StateChanges& changes);
  bool find_room(const Request& request, bool may_preempt, RequestQueues& queues);
  Request* over_share(const Request& request, const RequestQueues& queues) const;
  bool can_admit(const Request& request, const RequestQueues& queues);
  bool waits_for_prefix(const Request& request, const RequestQueues& queues);
  void begin(Request& request, RequestQueues& queues, StateChanges& changes);
  void plan_running(RequestQueues& queues, Left& left);
  void plan_draft_tokens(Left& left);
  void plan_prompts(RequestQueues& queues, Left& left);
  int64_t chunk_of(const Request& request, const Left& left) const;
  bool make_room(Request& request, int64_t tokens, RequestQueues& queues);
  void preempt(Request& request, RequestQueues& queues);
  bool is_planned(const Request& request) const;
  bool can_follow(const PlannedRows& entry) const;
  int64_t own_drafts(const Request& request) const;  // default where the request sets none

  const SchedulerLimits limits_;
  KvCache& cache_;
  const StepBudget& budget_;
  DiskTier* const disk_;
  Plan plan_;
  StateChanges prepared_;  // for requests admitted since the last plan
  Entry last_ = Entry::kForward;
  uint64_t preemptions_ = 0;
};

// Fills a batch from a plan that has its draft tokens, and sets each entry's `results`.
Batch make_batch(Plan& plan, size_t groups);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_
