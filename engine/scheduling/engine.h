// The engine's continuous batching: it takes requests, runs one mixed batch per step and returns
// events.
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

#include "cache/image_names.h"
#include "cache/image_store.h"
#include "cache/kv_cache.h"
#include "config/config.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "scheduling/request.h"
#include "scheduling/scheduler.h"
#include "scheduling/step.h"
#include "scheduling/step_budget.h"
#include "wherry.h"

namespace wherry {

// The functions implement those of wherry.h, which documents them, but throw Error instead of
// returning a status. Thread-safe. The model and the sampler run without the lock, on the thread
// that calls launch and collect, or on the engine's own thread.
class Engine {
 public:
  // draft: a smaller model that proposes draft tokens; null if there is none.
  Engine(std::shared_ptr<const Model> model, std::shared_ptr<const Model> draft,
         const EngineConfig& config);
  Engine(std::shared_ptr<const Model> model, const EngineConfig& config)
      : Engine(std::move(model), nullptr, config) {}
  ~Engine();  // stops the thread, wakes all callers of wait() and waits until they have returned
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void add(uint64_t id, const int32_t* tokens, size_t n, const wherry_params& params);
  void abort(uint64_t id);
  void reset();
  void clear_cache();

  void launch();
  bool ready();
  // Returns how many events it wrote; sets `error` to the reason of the last WHERRY_ERROR event
  // among them.
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
  std::vector<ImageSpan> checked_images(const wherry_params& params, size_t prompt) const;
  void require_free(const char* call) const;  // throws WHERRY_BUSY if a thread steps the engine

  // The phases of a step. Functions with a Lock argument hold the lock on entry and on return.
  bool plan_step();            // returns false if the step has nothing to do
  void run_model(Lock& lock);  // releases the lock while the model runs
  void prepare_next();         // runs while the device computes the step
  void launch_plan(Lock& lock, Plan& plan, std::string& failure);
  // Launches the next step if the device supports it; releases the lock while launching.
  void launch_ahead(Lock& lock);
  void finish_step(Lock& lock);  // releases the lock while it waits and samples
  double step_seconds(const StepResult& result, double now);
  void count_graphs(const GraphCounts& graphs);
  void accept(StepResult& result, double seconds);
  void settle_ahead(const StepResult& result);
  void accept_restore(Request& request);
  void fail_stuck_requests();
  void save_prefixes();
  void accept_image(const PlannedRows& entry);
  void accept_entry(PlannedRows& entry, Outcome& outcome);
  void save_state(Request& request, bool prefilling, bool sampled);
  void accept_samples(Request& request, Outcome& outcome);
  void begin(Request& request);
  void fail_step(const std::string& reason);
  void run_thread();

  bool has_requests() const { return !queues_.waiting.empty() || !queues_.active.empty(); }
  bool has_work() const { return has_requests() || (disk_ && disk_->has_work()); }
  bool is_in_flight(const Request& request) const;
  QueuedEvent& emit(Request& request, wherry_finish finish, const Sample* sample,
                    const std::string& error = {});
  // Removes a request after its last event is queued, and returns its pages to the pool.
  void remove(Request& request, bool keep_pages);
  void finish_without_token(Request& request, wherry_finish reason, const std::string& error = {});
  void abort_all();
  size_t return_events(wherry_event* events, size_t cap, std::string* error);
  void add_disk_stats(wherry_stats* stats) const;

  const std::shared_ptr<const Model> model_;
  const EngineConfig config_;

  std::mutex control_;        // serializes start, stop and reset; locked before mutex_
  mutable std::mutex mutex_;  // guards every field below, unless the field's comment says otherwise
  std::condition_variable work_;            // notified when the engine's thread has work
  std::condition_variable events_changed_;  // notified when events are queued; wait() sleeps on it
  // Notified when no step is in flight any more, or when a caller of wait() has returned.
  std::condition_variable settled_;

  KvCache cache_;
  ImageNames image_names_;
  ImageStore images_;
  StepBudget budget_;
  // Owns session, sampler and draft model; the stepping thread uses it without the lock.
  Stepper stepper_;
  std::unique_ptr<DiskTier> disk_;  // null if the disk cache is off
  Scheduler scheduler_;
  // The requests must be destroyed before cache_.
  std::unordered_map<uint64_t, std::unique_ptr<Request>> requests_;
  RequestQueues queues_;
  uint64_t arrivals_ = 0;
  std::deque<QueuedEvent> events_;
  std::vector<std::vector<float>> returned_;  // embeddings that the last returned events point to
  wherry_stats stats_{};
  uint64_t graph_steps_ = 0;  // steps that CUDA graph replay ran in the session
  // Reasons why graphs, or launch-ahead, ended; set once.
  std::string graphs_given_up_, chains_given_up_;
  mutable std::set<std::string> disk_problems_;  // disk problems reported so far
  double step_started_ = 0;  // start of the step in flight; 0 if none is in flight
  double last_ended_ = 0;    // time when the last step ended
  // True if the last step was one of the tower, for whose end no call has waited.
  bool after_see_ = false;
  uint64_t seen_for_ = 0;  // user of the request whose image the tower has computed last

  Plan plan_;  // plan of the step in flight; the stepping thread changes it without the lock
  std::vector<uint64_t> finished_;  // ids of requests whose draft-model state must still be removed
  bool launched_ = false;           // true between launch and collect
  bool inside_ = false;  // true while a thread is in run_model or finish_step without the lock
  std::string failure_;  // why the launch failed; empty if it succeeded
  Plan ahead_;           // plan of the step that was launched ahead; empty if there is none
  std::string ahead_failure_;

  std::thread thread_;
  bool own_thread_ = false;  // true between start() and stop()
  bool stopping_ = false;
  bool paused_ = false;  // true while reset() waits for the thread to be between steps
  int idle_plans_ = 0;   // number of consecutive plans that were empty although requests existed
  bool closing_ = false;
  int waiters_ = 0;
  int wakes_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_ENGINE_H_
