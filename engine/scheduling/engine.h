// Continuous batching: requests in, one mixed batch a step, events out.
#ifndef WHERRY_ENGINE_SCHEDULING_ENGINE_H_
#define WHERRY_ENGINE_SCHEDULING_ENGINE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "abi/config.h"
#include "cache/page_pool.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "scheduling/request.h"
#include "scheduling/scheduler.h"
#include "wherry.h"

namespace wherry {

// The functions are those of wherry.h, which has their contract; they throw Error instead of
// returning a status. Thread-safe. The model and the sampler run without the lock, on the thread
// that calls launch and collect, or on the engine's own.
class Engine {
 public:
  // Null policies: FirstComeScheduler, StandardSampler.
  Engine(std::shared_ptr<const Model> model, const EngineConfig& config,
         std::unique_ptr<Scheduler> scheduler = nullptr,
         std::unique_ptr<Sampler> sampler = nullptr);
  ~Engine();  // stops the thread, and wakes those in wait() and waits until they have left
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void add(uint64_t id, const int32_t* tokens, size_t n, const wherry_params& params);
  void abort(uint64_t id);
  void reset();
  void clear_cache();

  void launch();
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
  };
  // What came of one planned entry.
  struct Outcome {
    Sample sample;
    std::string error;
  };
  struct StepResult {
    std::vector<Outcome> outcomes;  // one for each planned entry
    std::string failure;            // of the whole step; then there are no outcomes
    double collect_seconds = 0, sample_seconds = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  void check_prompt(const int32_t* tokens, size_t n) const;
  void check_fits(const Request& request) const;
  void require_free(const char* call) const;  // throws WHERRY_BUSY

  // The parts of a step. Those with a lock hold it on entry and on return.
  bool plan_step();              // false: nothing to do
  void run_model(Lock& lock);    // gives up the lock meanwhile
  void finish_step(Lock& lock);  // gives up the lock while it waits and samples
  StepResult collect_and_sample();
  std::vector<Outcome> sample_all(const Logits& logits);
  void accept(const StepResult& result);
  void accept_entry(const PlannedRows& entry, const Outcome& outcome);
  void fail_step(const std::string& reason);
  void run_thread();

  bool has_work() const { return !queues_.active.empty() || !queues_.waiting.empty(); }
  bool is_under_way(const Request& request) const;
  void emit(const Request& request, wherry_finish finish, const Sample* sample,
            const std::string& error = {});
  // Removes a request, whose last event is queued; its pages return to the pool.
  void forget(Request& request);
  void finish_without_token(Request& request, wherry_finish reason, const std::string& error = {});
  void abort_all();
  size_t hand_out(wherry_event* events, size_t cap, std::string* error);

  const std::shared_ptr<const Model> model_;
  const EngineConfig config_;
  const std::unique_ptr<Scheduler> scheduler_;
  const std::unique_ptr<Sampler> sampler_;
  const std::unique_ptr<Session> session_;

  std::mutex control_;            // start, stop and reset exclude each other; taken before mutex_
  mutable std::mutex mutex_;      // guards everything below, except as said
  std::condition_variable work_;  // the engine's thread: there is something to do
  std::condition_variable events_changed_;  // wait(): there is something to hand out
  std::condition_variable settled_;         // no step under way, or a waiter left

  PagePool pool_;
  std::unordered_map<uint64_t, std::unique_ptr<Request>>
      requests_;  // after pool_: they return pages
  RequestQueues queues_;
  std::deque<QueuedEvent> events_;
  wherry_stats stats_{};

  Plan plan_;              // of the step under way; read without the lock by the stepping thread
  bool launched_ = false;  // between launch and collect
  bool inside_ = false;    // a thread is in run_model or finish_step, without the lock
  std::string failure_;    // why the model did not run; empty: it did

  std::thread thread_;
  bool own_thread_ = false;  // start() was called, stop() was not
  bool stopping_ = false;
  bool paused_ = false;   // reset() waits for the thread to settle
  bool stalled_ = false;  // the scheduler found nothing to do; until something changes
  bool closing_ = false;
  int waiters_ = 0;
  int wakes_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_ENGINE_H_
