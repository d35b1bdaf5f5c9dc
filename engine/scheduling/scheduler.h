// The scheduler plans a step: which rows it computes, which requests it admits and which it
// preempts.
#ifndef WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_
#define WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cache/disk_tier.h"
#include "cache/image_store.h"
#include "cache/kv_cache.h"
#include "model/model.h"
#include "scheduling/request.h"
#include "scheduling/step_budget.h"
#include "scheduling/waiting_queue.h"

namespace wherry {

// All requests that are not finished: waiting ones and active ones.
struct RequestQueues {
  WaitingQueue waiting;
  std::vector<Request*> active;  // admitted requests, ordered by priority, then arrival
};

// Consecutive rows of one request in a planned step.
struct PlannedRows {
  PlannedRows(Request* request, int64_t rows) : request(request), rows(rows) {}

  Request* request;  // null if the request ended or the device drew another token
  // Number of the request's pending tokens, from `computed` on, or of its encoder source tokens.
  int64_t rows;
  // Upper bound on draft tokens, from free pages and result rows; 0 unless the request is running.
  int64_t max_draft_tokens = 0;
  int64_t most_drafts = 0;            // upper bound on the draft tokens that may be rejected
  std::vector<int32_t> draft_tokens;  // draft tokens, proposed after planning
  bool forced = false;  // true if the grammar mask forces the draft tokens, so none can be rejected
  std::string error;    // why the request fails; empty if it continues
  int64_t results = 0;  // number of the entry's result rows; they follow the plan's order
  // True if the device draws the token, so that launch-ahead is possible.
  bool device_draws = false;
  // Result row of the previous step whose token is this entry's input; -1 if none.
  int32_t chosen_from = -1;
  // [rows] rows of image features that replace the tokens' embeddings, or empty.
  std::vector<int32_t> image_rows;
  // For Entry::kSee: the image to compute, and its first row of image features.
  const ImageSpan* image = nullptr;
  int64_t image_first = 0;

  // Whether the entry's last row samples a token, which means that all of the request's tokens are
  // then computed.
  bool draws() const { return chosen_from >= 0 || rows == request->pending(); }
  // Returns the output index of the token that the entry's first result row samples.
  int64_t next_output() const { return request->output_size() + (chosen_from >= 0 ? 1 : 0); }
};

struct Plan {
  Entry entry = Entry::kForward;
  std::vector<PlannedRows> entries;  // entry s is sequence s of the batch
  StateChanges changes;              // state changes to apply before the step
  // Requests that read pages from disk in this step instead of computing rows.
  std::vector<Request*> restores;
  double launched = 0;        // time when the step was launched
  double launch_seconds = 0;  // seconds that launching the model took

  bool empty() const { return entries.empty() && restores.empty(); }
};

struct SchedulerLimits {
  int64_t max_batch = 0;       // upper bound on the sequences in one step
  int64_t max_rows = 0;        // upper bound on the rows of one step
  int64_t logit_rows = 0;      // upper bound on the result rows of one step
  int64_t max_drafts = 0;      // draft tokens of a request that sets no number
  bool bidirectional = false;  // true if one step must compute a whole sequence
  // True if one step must compute all rows of an image that are not in the cache, because they
  // attend to each other.
  bool complete_images = false;
};

// Plans steps of continuous batching. Running requests have a row in every step, the older ones
// first; StepBudget limits the prefill rows next to them. The scheduler admits a request when the
// pages of its prompt are free or evictable. When pages run out, it preempts the youngest request
// of the lowest priority, which keeps its tokens, and its pages until they are evicted, and resumes
// later with the same tokens. The oldest request of the highest priority always advances, so there
// is no deadlock.
class Scheduler {
 public:
  // disk: the disk tier of the prefix cache; null if it is off.
  Scheduler(const SchedulerLimits& limits, KvCache& cache, ImageStore& images,
            const StepBudget& budget, DiskTier* disk = nullptr)
      : limits_(limits), cache_(cache), images_(images), budget_(budget), disk_(disk) {}

  // Plans the next step; an empty plan means that there is nothing to do.
  Plan plan(RequestQueues& queues);

  // Plans ahead while a step runs: allocates pages for the next rows and admits requests without
  // preemption, none of which depends on the tokens of the step in flight. Calling it is optional
  // and changes no token.
  void prepare(RequestQueues& queues, const Plan& in_flight);

  // Plans for launch-ahead the step after the one in flight: one row for each request that
  // continues, whose token the device has drawn. Returns an empty plan if that step is not known
  // yet: a waiting request may get rows in it, the host must sample a token
  // (CandidateSampler::scale), or pages are short.
  Plan follow(const RequestQueues& queues, const Plan& in_flight);

  uint64_t preemptions() const { return preemptions_; }

 private:
  struct Left {  // what remains of the limits of the planned step
    int64_t rows, results;
    int64_t prompts;         // number of prompts that are or could be in the step
    StepWork running, work;  // work of the running requests; work of all planned rows
  };

  Entry entry_of(const Request& request) const;
  void choose_entry(const RequestQueues& queues);
  // of scheduler_images.cc
  const ImageSpan* image_to_see(const Request& request) const;
  PlannedRows seeing(const RequestQueues& queues) const;
  int64_t rows_with_images(const Request& request, int64_t rows) const;
  int64_t rows_of_complete_images(const Request& request, int64_t rows, const Left& left) const;
  bool leaves_out_running(const RequestQueues& queues, const Left& left) const;
  std::vector<int32_t> use_images(const Request& request, int64_t rows);
  bool belongs(const Request& request) const;
  void admit(RequestQueues& queues, bool may_preempt, StateChanges& changes);
  bool find_room(const Request& request, bool may_preempt, RequestQueues& queues);
  Request* over_share(const Request& request, const RequestQueues& queues) const;
  bool can_admit(const Request& request, const RequestQueues& queues);
  bool waits_for_prefix(const Request& request, const RequestQueues& queues);
  void begin(Request& request, RequestQueues& queues, StateChanges& changes);
  void plan_running(RequestQueues& queues, Left& left);
  void plan_draft_tokens(Left& left);
  int64_t drafts_to_snapshot(const PlannedRows& entry) const;
  void plan_prompts(RequestQueues& queues, Left& left);
  int64_t snapshot_point(const Request& request) const;
  int64_t chunk_of(const Request& request, const Left& left) const;
  bool make_room(Request& request, int64_t tokens, RequestQueues& queues);
  void preempt(Request& request, RequestQueues& queues);
  bool is_planned(const Request& request) const;
  bool can_follow(const PlannedRows& entry) const;
  // Returns the request's number of draft tokens; the default if it sets none.
  int64_t own_drafts(const Request& request) const;

  const SchedulerLimits limits_;
  KvCache& cache_;
  ImageStore& images_;
  const StepBudget& budget_;
  DiskTier* const disk_;
  Plan plan_;
  StateChanges prepared_;  // state changes of requests admitted since the last plan
  Entry last_ = Entry::kForward;
  bool left_out_ = false;  // whether the last step of kForward left out running requests
  uint64_t preemptions_ = 0;
};

// Builds the batch of a plan that has its draft tokens, and sets each entry's `results`.
Batch make_batch(Plan& plan, const BatchShape& shape);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_
