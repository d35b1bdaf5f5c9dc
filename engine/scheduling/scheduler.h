// Which rows the next step computes, which requests are admitted, and which are preempted.
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

  Request* request;                   // null: it ended meanwhile, or its row was for another token
  int64_t rows;                       // of its pending tokens, from `computed` on; of its source
  int64_t max_draft_tokens = 0;       // for which there are pages and results; none unless it runs
  int64_t most_drafts = 0;            // of them, that may be wrong
  std::vector<int32_t> draft_tokens;  // made after planning
  bool forced = false;                // by a mask: they are right
  std::string error;                  // why the request ends; empty: it goes on
  int64_t results = 0;                // rows of the results that are its own, in the plan's order
  bool device_draws = false;          // its token, so that its next row needs no host
  int32_t chosen_from = -1;  // row of the results of the step before whose token its row has

  // Whether a token is drawn from its last row: all of the request's tokens are computed then.
  bool draws() const { return chosen_from >= 0 || rows == request->pending(); }
  // Number of the token in the output that its first row of these gives.
  int64_t next_output() const { return request->output_size() + (chosen_from >= 0 ? 1 : 0); }
};

struct Plan {
  Entry entry = Entry::kForward;
  std::vector<PlannedRows> entries;  // entry s is sequence s of the batch
  StateChanges changes;              // before the step
  std::vector<Request*> restores;    // with pages to read from disk; no rows of theirs meanwhile
  double launched = 0;               // when its step was
  double launch_seconds = 0;         // of the model

  bool empty() const { return entries.empty() && restores.empty(); }
};

struct SchedulerLimits {
  int64_t max_batch = 0;   // sequences in one step
  int64_t max_rows = 0;    // rows of one step
  int64_t logit_rows = 0;  // of them, whose results are wanted
  int64_t max_drafts = 0;  // draft tokens of a request that does not say
  bool whole = false;      // a sequence is computed in one step
};

// Running requests have a row in every step, the older ones first; what prompts may take beside
// them is the budget's to say. A request is admitted when the pages of its prompt are free or idle,
// and when pages run out the youngest one of the lowest priority is preempted: it keeps its tokens,
// and its pages as long as nobody needs them, so it goes on with the same ones later. The oldest
// request of the highest priority always advances, so there is no deadlock.
class Scheduler {
 public:
  // disk: may be null.
  Scheduler(const SchedulerLimits& limits, KvCache& cache, const StepBudget& budget,
            DiskTier* disk = nullptr)
      : limits_(limits), cache_(cache), budget_(budget), disk_(disk) {}

  // An empty plan means that there is nothing to do.
  Plan plan(RequestQueues& queues);

  // What of the next plan does not depend on the tokens of the step under way: pages for the rows
  // that come next, and admission without taking anybody's place. May be called or not: the tokens
  // are the same.
  void prepare(RequestQueues& queues, const Plan& under_way);

  // The step after the one that is under way, if it is known but for tokens that the device itself
  // can take from that one: a row for each request that goes on. Else an empty plan: somebody waits
  // whose rows are not in that step, a token needs the host (CandidateSampler::scale), or pages are
  // short.
  Plan follow(const RequestQueues& queues, const Plan& under_way);

  uint64_t preemptions() const { return preemptions_; }

 private:
  struct Left {  // of the step that is planned
    int64_t rows, results;
    int64_t prompts;         // that are there for it, or could be
    StepWork running, work;  // of running requests, and with what is planned beside them
  };

  void choose_entry(const RequestQueues& queues);
  bool belongs(const Request& request) const;
  void admit(RequestQueues& queues, bool may_put_back, StateChanges& changes);
  bool find_place(const Request& request, bool may_put_back, RequestQueues& queues);
  Request* in_excess(const Request& request, const RequestQueues& queues) const;
  bool may_enter(const Request& request, const RequestQueues& queues);
  bool waits_for_prefix(const Request& request, const RequestQueues& queues);
  void enter(Request& request, RequestQueues& queues, StateChanges& changes);
  void plan_running(RequestQueues& queues, Left& left);
  void plan_draft_tokens(Left& left);
  void plan_prompts(RequestQueues& queues, Left& left);
  int64_t chunk_of(const Request& request, const Left& left) const;
  bool make_room(Request& request, int64_t tokens, RequestQueues& queues);
  void put_back(Request& request, RequestQueues& queues);
  bool is_planned(const Request& request) const;
  bool can_follow(const PlannedRows& entry) const;
  int64_t own_drafts(const Request& request) const;  // draft tokens where the request does not say

  const SchedulerLimits limits_;
  KvCache& cache_;
  const StepBudget& budget_;
  DiskTier* const disk_;
  Plan plan_;
  StateChanges prepared_;  // of requests that were admitted since the last plan
  Entry last_ = Entry::kForward;
  uint64_t preemptions_ = 0;
};

// The arrays of a plan that has its draft tokens; fills each entry's `results`.
Batch make_batch(Plan& plan, size_t groups);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_
