// Which rows the next step computes.
#ifndef WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_
#define WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_

#include <deque>
#include <vector>

#include "model/model.h"
#include "scheduling/request.h"

namespace wherry {

// The requests that are not finished. Both in order of arrival.
struct RequestQueues {
  std::deque<Request*> waiting;
  std::vector<Request*> active;  // prefilling and running
};

// Consecutive rows of one request.
struct PlannedRows {
  Request* request;
  int64_t rows;
  bool samples;  // they end with the newest token: the next one is sampled from their last row
};

struct Plan {
  std::vector<PlannedRows> entries;  // entry s is sequence s of the batch
  Batch batch;  // logit_rows: the last row of each entry that samples, or of all

  bool empty() const { return entries.empty(); }
};

struct SchedulerLimits {
  int max_batch = 0;  // sequences in one step
  int max_rows = 0;   // rows of one step
};

// A policy: another order or admission rule is another class. Changes states and takes pages, but
// never fails because the cache is full.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // An empty plan means that there is nothing to do.
  virtual Plan plan(RequestQueues& queues, PagePool& pool) = 0;
};

// First come, first served. Each running request has one row in every step; what is left of
// max_rows goes to prompts in order of arrival. A request is admitted when the pages it may ever
// need are free beyond those that admitted ones may still take, so that none ever runs out.
class FirstComeScheduler : public Scheduler {
 public:
  explicit FirstComeScheduler(SchedulerLimits limits) : limits_(limits) {}
  Plan plan(RequestQueues& queues, PagePool& pool) override;

 private:
  SchedulerLimits limits_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_SCHEDULER_H_
