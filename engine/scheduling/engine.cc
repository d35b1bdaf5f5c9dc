#include "scheduling/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "support/error.h"

namespace wherry {

namespace {

wherry_event event_of(uint64_t id, wherry_finish finish, const Sample* sample) {
  wherry_event event{};
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
  if (tokens == nullptr || n == 0) throw Error(WHERRY_INVALID_ARGUMENT, "the prompt has no tokens");
  if (n >= static_cast<size_t>(config_.context)) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("the prompt has ", n, " tokens; the context is ", config_.context,
                       ", of which at least one is the answer's"));
  }
  const int64_t vocab = model_->metadata().vocab_size;
  for (size_t i = 0; i < n; ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    throw Error(WHERRY_INVALID_ARGUMENT, concat("token ", i, " of the prompt is ", tokens[i],
                                                "; accepted are 0..", vocab - 1));
  }
}

void Engine::check_fits(const Request& request) const {
  if (request.most_pages() <= pool_.total()) return;
  throw Error(WHERRY_INVALID_ARGUMENT,
              concat("a prompt of ", request.prompt_size, " tokens and ", request.max_output,
                     " of output take ", request.most_pages(), " pages of the cache, which has ",
                     pool_.total(), " (", config_.kv_tokens,
                     " tokens): give fewer max_tokens or more kv_tokens"));
}

void Engine::add(uint64_t id, const int32_t* tokens, size_t n, const wherry_params& params) {
  check_prompt(tokens, n);
  const Metadata& metadata = model_->metadata();
  SamplingParams checked = checked_params(params, metadata.vocab_size);
  auto request =
      std::make_unique<Request>(id, std::vector<int32_t>(tokens, tokens + n), std::move(checked),
                                config_.context, pool_, static_cast<int32_t>(metadata.page_size));
  check_fits(*request);
  Lock lock(mutex_);
  if (requests_.count(id) != 0) {
    throw Error(WHERRY_INVALID_ARGUMENT, concat("request ", id, " is still running"));
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
  if (it == requests_.end())
    throw Error(WHERRY_NOT_FOUND, concat("no request ", id, " is running"));
  Request& request = *it->second;
  if (is_under_way(request)) {
    request.aborted = true;  // its pages are being written: they return when the step is over
  } else {
    finish_without_token(request, WHERRY_ABORTED);
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
    require_free("wherry_engine_reset");
    if (launched_) throw Error(WHERRY_BUSY, "wherry_engine_reset between launch and collect");
  }
  abort_all();
  stats_ = wherry_stats{};
}

void Engine::clear_cache() {}

void Engine::abort_all() {
  while (!requests_.empty()) finish_without_token(*requests_.begin()->second, WHERRY_ABORTED);
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

void Engine::finish_without_token(Request& request, wherry_finish reason,
                                  const std::string& error) {
  emit(request, reason, nullptr, error);
  forget(request);
}

// ---- events ----

void Engine::emit(const Request& request, wherry_finish finish, const Sample* sample,
                  const std::string& error) {
  events_.push_back({event_of(request.id, finish, sample), error});
  events_changed_.notify_all();
}

size_t Engine::hand_out(wherry_event* events, size_t cap, std::string* error) {
  if (events == nullptr && cap > 0) throw Error(WHERRY_INVALID_ARGUMENT, "events is null");
  size_t n = 0;
  for (; n < cap && !events_.empty(); ++n) {
    events[n] = events_.front().event;
    if (!events_.front().error.empty()) *error = std::move(events_.front().error);
    events_.pop_front();
  }
  return n;
}

size_t Engine::wait(wherry_event* events, size_t cap, int timeout_ms, std::string* error) {
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
  if (wakes_ > 0) --wakes_;
  return hand_out(events, cap, error);
}

void Engine::wake() {
  Lock lock(mutex_);
  // Kept for the next wait() if nobody waits now, so that none is lost between two waits.
  wakes_ = std::min(wakes_ + 1, std::max(waiters_, 1));
  events_changed_.notify_all();
}

wherry_stats Engine::stats() const {
  Lock lock(mutex_);
  wherry_stats stats = stats_;
  stats.waiting = static_cast<int32_t>(queues_.waiting.size());
  for (const Request* request : queues_.active) {
    ++(request->state == RequestState::kRunning ? stats.running : stats.prefilling);
  }
  stats.pages_total = pool_.total();
  stats.pages_free = pool_.available();
  stats.page_size = static_cast<int32_t>(model_->metadata().page_size);
  return stats;
}

}  // namespace wherry
