// The parts of a step, and the engine's own thread.
#include <tvm/ffi/error.h>

#include <chrono>
#include <exception>
#include <utility>

#include "scheduling/engine.h"
#include "support/error.h"

#if defined(__linux__)
#include <pthread.h>
#endif

namespace wherry {

namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The text of the exception that is being handled.
std::string current_reason() {
  try {
    throw;
  } catch (const tvm::ffi::Error& error) {
    return concat(std::string(error.kind()), ": ", std::string(error.message()));
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

}  // namespace

void Engine::require_free(const char* call) const {
  if (own_thread_) throw Error(WHERRY_BUSY, concat(call, " while the engine's own thread runs"));
  if (inside_) throw Error(WHERRY_BUSY, concat(call, " while another thread makes a step"));
}

void Engine::launch() {
  Lock lock(mutex_);
  require_free("wherry_engine_launch");
  if (launched_) throw Error(WHERRY_BUSY, "wherry_engine_launch twice: collect the first step");
  if (plan_step()) run_model(lock);
}

size_t Engine::collect(wherry_event* events, size_t cap, std::string* error) {
  Lock lock(mutex_);
  require_free("wherry_engine_collect");
  if (launched_) finish_step(lock);
  return hand_out(events, cap, error);
}

size_t Engine::step(wherry_event* events, size_t cap, std::string* error) {
  launch();
  return collect(events, cap, error);
}

bool Engine::plan_step() {
  failure_.clear();
  try {
    plan_ = scheduler_->plan(queues_, pool_);
  } catch (...) {  // all that are admitted end: which of them it was for is not known
    std::string reason = current_reason();
    plan_ = Plan();
    while (!queues_.active.empty()) {
      finish_without_token(*queues_.active.front(), WHERRY_ERROR, reason);
    }
  }
  launched_ = !plan_.empty();
  stalled_ = plan_.empty();
  return launched_;
}

void Engine::run_model(Lock& lock) {
  inside_ = true;
  lock.unlock();
  double start = now_seconds();
  std::string failure;
  try {
    session_->launch(plan_.batch);
  } catch (...) {
    failure = current_reason();
  }
  double seconds = now_seconds() - start;
  lock.lock();
  stats_.model_seconds += seconds;
  failure_ = std::move(failure);
  inside_ = false;
}

void Engine::finish_step(Lock& lock) {
  inside_ = true;
  lock.unlock();
  StepResult result = collect_and_sample();
  lock.lock();
  inside_ = false;
  launched_ = false;
  ++stats_.steps;
  stats_.model_seconds += result.collect_seconds;
  stats_.sample_seconds += result.sample_seconds;
  try {
    accept(result);
  } catch (...) {
    fail_step(current_reason());
  }
  plan_ = Plan();
  settled_.notify_all();
}

Engine::StepResult Engine::collect_and_sample() {
  StepResult result;
  result.failure = failure_;  // written by the launch, which no other thread can be in
  if (!result.failure.empty()) return result;
  try {
    double start = now_seconds();
    Logits logits = session_->collect();
    double collected = now_seconds();
    result.collect_seconds = collected - start;
    result.outcomes = sample_all(logits);
    result.sample_seconds = now_seconds() - collected;
  } catch (...) {
    result.failure = current_reason();
  }
  return result;
}

std::vector<Engine::Outcome> Engine::sample_all(const Logits& logits) {
  if (logits.rows != static_cast<int64_t>(plan_.batch.logit_rows.size())) {
    throw Error(WHERRY_INTERNAL, concat("the model gave ", logits.rows, " rows of logits; ",
                                        plan_.batch.logit_rows.size(), " were asked for"));
  }
  std::vector<Outcome> outcomes(plan_.entries.size());
  const float* row = logits.data;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const PlannedRows& entry = plan_.entries[i];
    if (!entry.samples) continue;
    try {
      outcomes[i].sample = sampler_->sample(entry.request->sampling(), row, logits.vocab, nullptr);
    } catch (...) {  // of this request alone
      outcomes[i].error = current_reason();
    }
    row += logits.vocab;
  }
  return outcomes;
}

void Engine::accept(const StepResult& result) {
  if (!result.failure.empty()) return fail_step(result.failure);
  for (size_t i = 0; i < plan_.entries.size(); ++i) {
    accept_entry(plan_.entries[i], result.outcomes[i]);
    plan_.entries[i].request = nullptr;  // it may be gone
  }
}

void Engine::accept_entry(const PlannedRows& entry, const Outcome& outcome) {
  Request& request = *entry.request;
  if (request.aborted) return finish_without_token(request, WHERRY_ABORTED);
  if (!outcome.error.empty()) return finish_without_token(request, WHERRY_ERROR, outcome.error);
  const bool prefilling = request.state == RequestState::kPrefilling;
  request.computed += entry.rows;
  if (prefilling) stats_.prefill_tokens += static_cast<uint64_t>(entry.rows);
  if (!entry.samples) return;
  request.state = RequestState::kRunning;
  wherry_finish reason = request.append(outcome.sample);
  ++stats_.decode_tokens;
  emit(request, reason, &outcome.sample);
  if (reason != WHERRY_RUNNING) forget(request);
}

void Engine::fail_step(const std::string& reason) {
  for (PlannedRows& entry : plan_.entries) {
    if (entry.request == nullptr) continue;
    Request& request = *std::exchange(entry.request, nullptr);
    if (request.aborted) {
      finish_without_token(request, WHERRY_ABORTED);
    } else {
      finish_without_token(request, WHERRY_ERROR, reason);
    }
  }
}

// ---- the engine's own thread ----

void Engine::start() {
  std::lock_guard<std::mutex> control(control_);
  Lock lock(mutex_);
  require_free("wherry_engine_start");
  if (launched_) throw Error(WHERRY_BUSY, "wherry_engine_start between launch and collect");
  stopping_ = false;
  thread_ = std::thread([this] { run_thread(); });
  own_thread_ = true;
}

void Engine::stop() {
  std::lock_guard<std::mutex> control(control_);
  if (!thread_.joinable()) return;
  {
    Lock lock(mutex_);
    stopping_ = true;
    work_.notify_one();
  }
  thread_.join();
  Lock lock(mutex_);
  own_thread_ = false;
}

void Engine::run_thread() {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "wherry-engine");
#endif
  Lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stopping_ || (has_work() && !stalled_ && !paused_); });
    if (stopping_) return;
    if (!plan_step()) continue;
    run_model(lock);
    finish_step(lock);
  }
}

}  // namespace wherry
