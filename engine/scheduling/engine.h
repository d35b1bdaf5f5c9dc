// Continuous batching: requests in, one mixed batch a step, events out.
#ifndef WHERRY_ENGINE_SCHEDULING_ENGINE_H_
#define WHERRY_ENGINE_SCHEDULING_ENGINE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "abi/config.h"
#include "cache/kv_cache.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "scheduling/request.h"
#include "scheduling/scheduler.h"
#include "scheduling/step.h"
#include "scheduling/step_budget.h"
#include "speculation/draft_model.h"
#include "wherry.h"

namespace wherry {

// The functions are those of wherry.h, which has their contract; they throw Error instead of
// returning a status. Thread-safe. The model and the sampler run without the lock, on the thread
// that calls launch and collect, or on the engine's own.
class Engine {
 public:
  // draft: a smaller model that proposes draft tokens; null: none.
  Engine(std::shared_ptr<const Model> model, std::shared_ptr<const Model> draft,
         const EngineConfig& config);
  Engine(std::shared_ptr<const Model> model, const EngineConfig& config)
      : Engine(std::move(model), nullptr, config) {}
  ~Engine();  // stops the thread, and wakes those in wait() and waits until they have left
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void add(uint64_t id, const int32_t* tokens, size_t n, const wherry_params& params);
  void abort(uint64_t id);
  void reset();
  void clear_cache();

  void launch();
  bool ready();
  // Number of events written. `error` gets the reason of the last WHERRY_ERROR among them.
  size_t collect(wherry_event* events, size_t cap, std::string* error);
  size_t step(wherry_event* events, size_t cap, std::string* error);

  void start();
  void stop();
  size_t wait(wherry_event* events, size_t cap, int timeout_ms, std::string* error);
  void wake();

  wherry_stats stats() const;

 private:
  struct QueuedEvent {
    wherry_event event;
    std::string error;
    std::vector<float> embedding;
  };
  using Lock = std::unique_lock<std::mutex>;

  void check_prompt(const int32_t* tokens, size_t n, bool embed) const;
  void check_request(const Request& request) const;
  void require_free(const char* call) const;  // throws WHERRY_BUSY

  // The parts of a step. Those with a lock hold it on entry and on return.
  bool plan_step();            // false: nothing to do
  void run_model(Lock& lock);  // gives up the lock meanwhile
  void prepare_next();         // while a device computes
  void launch_plan(Lock& lock, Plan& plan, std::string& failure);
  void launch_ahead(Lock& lock);  // the step after it, where the device can; as run_model
  void finish_step(Lock& lock);   // gives up the lock while it waits and samples
  double step_seconds(const StepResult& result, double now);
  void count_graphs(const GraphCounts& graphs);
  void accept(StepResult& result, double seconds);
  void settle_ahead(const StepResult& result);
  void accept_restore(Request& request);
  void end_who_waits_in_vain();
  void save_prefixes();
  void accept_entry(PlannedRows& entry, Outcome& outcome);
  void accept_samples(Request& request, Outcome& outcome);
  void begin(Request& request);
  void fail_step(const std::string& reason);
  void run_thread();

  bool has_requests() const { return !queues_.waiting.empty() || !queues_.active.empty(); }
  bool has_work() const { return has_requests() || (disk_ && disk_->has_work()); }
  bool is_under_way(const Request& request) const;
  QueuedEvent& emit(Request& request, wherry_finish finish, const Sample* sample,
                    const std::string& error = {});
  // Removes a request, whose last event is queued; its pages return to the pool.
  void forget(Request& request, bool keep_pages);
  void finish_without_token(Request& request, wherry_finish reason, const std::string& error = {});
  void abort_all();
  size_t hand_out(wherry_event* events, size_t cap, std::string* error);
  void tell_disk(wherry_stats* stats) const;

  const std::shared_ptr<const Model> model_;
  const EngineConfig config_;

  std::mutex control_;            // start, stop and reset exclude each other; taken before mutex_
  mutable std::mutex mutex_;      // guards everything below, except as said
  std::condition_variable work_;  // the engine's thread: there is something to do
  std::condition_variable events_changed_;  // wait(): there is something to hand out
  std::condition_variable settled_;         // no step under way, or a waiter left

  KvCache cache_;
  StepBudget budget_;
  Stepper stepper_;  // session, sampler, draft model: used without the lock by the stepping thread
  std::unique_ptr<DiskTier> disk_;  // null: there is none
  Scheduler scheduler_;
  std::unordered_map<uint64_t, std::unique_ptr<Request>> requests_;  // after cache_
  RequestQueues queues_;
  uint64_t arrivals_ = 0;
  std::deque<QueuedEvent> events_;
  std::vector<std::vector<float>> handed_;  // embeddings of the events that were handed out last
  wherry_stats stats_{};
  uint64_t graph_steps_ = 0;                       // of the session
  std::string graphs_given_up_, chains_given_up_;  // set once
  mutable std::set<std::string> disk_problems_;    // that were told
  double step_started_ = 0;                        // 0: no step is under way
  double last_ended_ = 0;                          // when the last step had

  Plan plan_;                    // of the step under way; changed without the lock by its thread
  std::vector<uint64_t> ended_;  // requests of which the stepper does not know yet that they ended
  bool launched_ = false;        // between launch and collect
  bool inside_ = false;          // a thread is in run_model or finish_step, without the lock
  std::string failure_;          // why the model did not run; empty: it did
  Plan ahead_;                   // of the step that was launched behind that one; empty: none was
  std::string ahead_failure_;

  std::thread thread_;
  bool own_thread_ = false;  // start() was called, stop() was not
  bool stopping_ = false;
  bool paused_ = false;  // reset() waits for the thread to settle
  int idle_plans_ = 0;   // in a row, in which the scheduler found nothing to do for its requests
  bool closing_ = false;
  int waiters_ = 0;
  int wakes_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_ENGINE_H_
