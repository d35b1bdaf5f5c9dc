#include "engine.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "error.h"

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

core_event event_of(uint64_t id, core_finish finish, const Sample* sample) {
  core_event event{};
  event.id = id;
  event.token = -1;
  event.finish = finish;
  if (sample == nullptr) return event;
  event.token = sample->token;
  event.logprob = sample->logprob;
  for (const auto& [token, logprob] : sample->top) {
    event.top_ids[event.n_top] = token;
    event.top_logprobs[event.n_top++] = logprob;
  }
  return event;
}

std::unique_ptr<Session> open_session(const Model& model, const EngineConfig& config) {
  int64_t page = model.metadata().page_size;
  SessionLimits limits;
  limits.pages = config.kv_tokens / page;
  limits.rows = config.prefill_chunk;
  limits.sequences = config.max_batch;
  limits.page_ids = config.max_batch * std::min(pages_for(config.context, page), limits.pages);
  return model.open(limits);
}

template <typename Policy, typename Default, typename... Arguments>
std::unique_ptr<Policy> or_default(std::unique_ptr<Policy> given, Arguments... arguments) {
  if (given) return given;
  return std::make_unique<Default>(arguments...);
}

}  // namespace

Engine::Engine(std::shared_ptr<const Model> model, const EngineConfig& config,
               std::unique_ptr<Scheduler> scheduler, std::unique_ptr<Sampler> sampler)
    : model_(std::move(model)),
      config_(config),
      scheduler_(or_default<Scheduler, FirstComeScheduler>(
          std::move(scheduler), SchedulerLimits{config.max_batch, config.prefill_chunk})),
      sampler_(or_default<Sampler, StandardSampler>(std::move(sampler))),
      session_(open_session(*model_, config)),
      pool_(static_cast<int32_t>(config.kv_tokens / model_->metadata().page_size)) {}

Engine::~Engine() {
  stop();
  Lock lock(mutex_);
  closing_ = true;
  events_changed_.notify_all();
  settled_.wait(lock, [this] { return waiters_ == 0; });
}

// ---- requests ----

void Engine::check_prompt(const int32_t* tokens, size_t n) const {
  if (tokens == nullptr || n == 0) throw Error(CORE_INVALID_ARGUMENT, "the prompt has no tokens");
  if (n >= static_cast<size_t>(config_.context)) {
    throw Error(CORE_INVALID_ARGUMENT,
                concat("the prompt has ", n, " tokens; the context is ", config_.context,
                       ", of which at least one is the answer's"));
  }
  const int64_t vocab = model_->metadata().vocab_size;
  for (size_t i = 0; i < n; ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    throw Error(CORE_INVALID_ARGUMENT, concat("token ", i, " of the prompt is ", tokens[i],
                                              "; accepted are 0..", vocab - 1));
  }
}

void Engine::check_fits(const Request& request) const {
  if (request.most_pages() <= pool_.total()) return;
  throw Error(CORE_INVALID_ARGUMENT,
              concat("a prompt of ", request.prompt_size, " tokens and ", request.max_output,
                     " of output take ", request.most_pages(), " pages of the cache, which has ",
                     pool_.total(), " (", config_.kv_tokens,
                     " tokens): give fewer max_tokens or more kv_tokens"));
}

void Engine::add(uint64_t id, const int32_t* tokens, size_t n, const core_params& params) {
  check_prompt(tokens, n);
  const Metadata& metadata = model_->metadata();
  SamplingParams checked = checked_params(params, metadata.vocab_size);
  auto request =
      std::make_unique<Request>(id, std::vector<int32_t>(tokens, tokens + n), std::move(checked),
                                config_.context, pool_, static_cast<int32_t>(metadata.page_size));
  check_fits(*request);
  Lock lock(mutex_);
  if (requests_.count(id) != 0) {
    throw Error(CORE_INVALID_ARGUMENT, concat("request ", id, " is still running"));
  }
  queues_.waiting.push_back(request.get());
  try {
    requests_.emplace(id, std::move(request));
  } catch (...) {
    queues_.waiting.pop_back();
    throw;
  }
  stalled_ = false;
  work_.notify_one();
}

void Engine::abort(uint64_t id) {
  Lock lock(mutex_);
  auto it = requests_.find(id);
  if (it == requests_.end()) throw Error(CORE_NOT_FOUND, concat("no request ", id, " is running"));
  Request& request = *it->second;
  if (is_under_way(request)) {
    request.aborted = true;  // its pages are being written: they return when the step is over
  } else {
    finish_without_token(request, CORE_ABORTED);
  }
}

void Engine::reset() {
  std::lock_guard<std::mutex> control(control_);
  Lock lock(mutex_);
  if (own_thread_) {
    paused_ = true;
    settled_.wait(lock, [this] { return !launched_; });
    paused_ = false;
    work_.notify_one();
  } else {
    require_free("core_reset");
    if (launched_) throw Error(CORE_BUSY, "core_reset between launch and collect");
  }
  abort_all();
  stats_ = core_stats_t{};
}

void Engine::abort_all() {
  while (!requests_.empty()) finish_without_token(*requests_.begin()->second, CORE_ABORTED);
}

bool Engine::is_under_way(const Request& request) const {
  if (!launched_) return false;
  return std::any_of(plan_.entries.begin(), plan_.entries.end(),
                     [&](const PlannedRows& entry) { return entry.request == &request; });
}

void Engine::forget(Request& request) {
  request.state = RequestState::kFinished;
  auto& active = queues_.active;
  active.erase(std::remove(active.begin(), active.end(), &request), active.end());
  auto& waiting = queues_.waiting;
  waiting.erase(std::remove(waiting.begin(), waiting.end(), &request), waiting.end());
  requests_.erase(request.id);
  ++stats_.finished;
  stalled_ = false;
}

void Engine::finish_without_token(Request& request, core_finish reason, const std::string& error) {
  emit(event_of(request.id, reason, nullptr), error);
  forget(request);
}

// ---- events ----

void Engine::emit(const core_event& event, std::string error) {
  events_.push_back({event, std::move(error)});
  events_changed_.notify_all();
}

size_t Engine::hand_out(core_event* events, size_t cap, std::string* error) {
  if (events == nullptr && cap > 0) throw Error(CORE_INVALID_ARGUMENT, "events is null");
  size_t n = 0;
  for (; n < cap && !events_.empty(); ++n) {
    events[n] = events_.front().event;
    if (!events_.front().error.empty()) *error = std::move(events_.front().error);
    events_.pop_front();
  }
  return n;
}

size_t Engine::wait(core_event* events, size_t cap, int timeout_ms, std::string* error) {
  Lock lock(mutex_);
  auto ready = [this] { return !events_.empty() || wakes_ > 0 || closing_; };
  ++waiters_;
  if (timeout_ms < 0) {
    events_changed_.wait(lock, ready);
  } else {
    events_changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), ready);
  }
  --waiters_;
  settled_.notify_all();
  if (closing_) return 0;
  if (events_.empty() && wakes_ > 0) --wakes_;
  return hand_out(events, cap, error);
}

void Engine::wake() {
  Lock lock(mutex_);
  // Kept for the next wait() if nobody waits now, so that none is lost between two waits.
  wakes_ = std::min(wakes_ + 1, std::max(waiters_, 1));
  events_changed_.notify_all();
}

core_stats_t Engine::stats() const {
  Lock lock(mutex_);
  core_stats_t stats = stats_;
  stats.waiting = static_cast<int32_t>(queues_.waiting.size());
  for (const Request* request : queues_.active) {
    ++(request->state == RequestState::kRunning ? stats.running : stats.prefilling);
  }
  stats.pages_total = pool_.total();
  stats.pages_free = pool_.available();
  stats.page_size = static_cast<int32_t>(model_->metadata().page_size);
  return stats;
}

// ---- a step ----

void Engine::require_free(const char* call) const {
  if (own_thread_) throw Error(CORE_BUSY, concat(call, " while the engine's own thread runs"));
  if (inside_) throw Error(CORE_BUSY, concat(call, " while another thread makes a step"));
}

void Engine::launch() {
  Lock lock(mutex_);
  require_free("core_step_launch");
  if (launched_) throw Error(CORE_BUSY, "core_step_launch twice: collect the first step");
  if (plan_step()) run_model(lock);
}

size_t Engine::collect(core_event* events, size_t cap, std::string* error) {
  Lock lock(mutex_);
  require_free("core_step_collect");
  if (launched_) finish_step(lock);
  return hand_out(events, cap, error);
}

size_t Engine::step(core_event* events, size_t cap, std::string* error) {
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
      finish_without_token(*queues_.active.front(), CORE_ERROR, reason);
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
    throw Error(CORE_INTERNAL, concat("the model gave ", logits.rows, " rows of logits; ",
                                      plan_.batch.logit_rows.size(), " were asked for"));
  }
  std::vector<Outcome> outcomes(plan_.entries.size());
  const float* row = logits.data;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const PlannedRows& entry = plan_.entries[i];
    if (!entry.samples) continue;
    try {
      outcomes[i].sample = sampler_->sample(*entry.request, row, logits.vocab);
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
  if (request.aborted) return finish_without_token(request, CORE_ABORTED);
  if (!outcome.error.empty()) return finish_without_token(request, CORE_ERROR, outcome.error);
  const bool prefilling = request.state == RequestState::kPrefilling;
  request.computed += entry.rows;
  if (prefilling) stats_.prefill_tokens += static_cast<uint64_t>(entry.rows);
  if (!entry.samples) return;
  request.state = RequestState::kRunning;
  core_finish reason = request.append(outcome.sample.token);
  ++stats_.decode_tokens;
  emit(event_of(request.id, reason, &outcome.sample));
  if (reason != CORE_RUNNING) forget(request);
}

void Engine::fail_step(const std::string& reason) {
  for (PlannedRows& entry : plan_.entries) {
    if (entry.request == nullptr) continue;
    Request& request = *std::exchange(entry.request, nullptr);
    if (request.aborted) {
      finish_without_token(request, CORE_ABORTED);
    } else {
      finish_without_token(request, CORE_ERROR, reason);
    }
  }
}

// ---- the engine's own thread ----

void Engine::start() {
  std::lock_guard<std::mutex> control(control_);
  Lock lock(mutex_);
  require_free("core_start");
  if (launched_) throw Error(CORE_BUSY, "core_start between launch and collect");
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
