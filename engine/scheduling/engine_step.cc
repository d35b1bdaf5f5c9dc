// The phases of an engine step, and the engine's own thread.
#include <tvm/ffi/error.h>

#include <chrono>
#include <exception>
#include <utility>

#include "scheduling/engine.h"
#include "support/clock.h"
#include "support/error.h"
#include "system/this_thread.h"

namespace wherry {

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

bool Engine::ready() {
  Lock lock(mutex_);
  require_free("wherry_engine_ready");
  if (!launched_ || !failure_.empty()) return true;
  inside_ = true;
  lock.unlock();
  bool ready = true;
  try {
    ready = stepper_.ready(plan_);
  } catch (...) {  // collect() rethrows this error and fails the step's requests
  }
  lock.lock();
  inside_ = false;
  return ready;
}

size_t Engine::collect(wherry_event* events, size_t cap, std::string* error) {
  Lock lock(mutex_);
  require_free("wherry_engine_collect");
  if (launched_) finish_step(lock);
  return return_events(events, cap, error);
}

size_t Engine::step(wherry_event* events, size_t cap, std::string* error) {
  launch();
  return collect(events, cap, error);
}

bool Engine::plan_step() {
  double start = now_seconds();
  if (!ahead_.empty()) {
    plan_ = std::exchange(ahead_, Plan());
    failure_ = std::exchange(ahead_failure_, std::string());
    launched_ = true;
    step_started_ = start;
    return true;
  }
  failure_.clear();
  for (uint64_t id : finished_) stepper_.drafter()->remove(id);
  finished_.clear();
  save_prefixes();
  try {
    plan_ = scheduler_.plan(queues_);
  } catch (...) {  // this fails all admitted requests, because any of them may be the cause
    std::string reason = current_reason();
    plan_ = Plan();
    while (!queues_.active.empty()) {
      finish_without_token(*queues_.active.front(), WHERRY_ERROR, reason);
    }
  }
  for (const PlannedRows& entry : plan_.entries) begin(*entry.request);
  for (Request* request : plan_.restores) begin(*request);
  launched_ = !plan_.empty();
  if (launched_ || !has_requests()) {
    idle_plans_ = 0;
  } else {
    fail_stuck_requests();
  }
  step_started_ = launched_ ? start : 0;
  stats_.host_seconds += now_seconds() - start;
  return launched_;
}

// If the scheduler had a turn for each kind of work and the first request got no row, that request
// never will. This would be a bug of the scheduler; it fails one request then, not the engine.
void Engine::fail_stuck_requests() {
  if (++idle_plans_ <= kStepKinds) return;
  idle_plans_ = 0;
  Request* first = queues_.active.empty() ? queues_.waiting.front() : queues_.active.front();
  finish_without_token(*first, WHERRY_ERROR,
                       concat("no step has room for the request: ", cache_.available(), " of ",
                              cache_.total(), " pages are free, ", cache_.idle(), " idle"));
}

// Saves a few pages to disk in each step while requests run, and all queued pages when none runs.
void Engine::save_prefixes() {
  constexpr int64_t kBesideSteps = 4;
  if (disk_) disk_->save(has_requests() ? kBesideSteps : INT64_MAX);
}

// Records the time of the request's first step.
void Engine::begin(Request& request) {
  if (request.times.started != 0) return;
  request.times.started = now_seconds();
  stats_.prompt_tokens += static_cast<uint64_t>(request.prompt_size);
  stats_.cached_tokens += static_cast<uint64_t>(request.cached_tokens);
}

void Engine::run_model(Lock& lock) {
  if (plan_.launched == 0 && failure_.empty()) launch_plan(lock, plan_, failure_);
  prepare_next();
  launch_ahead(lock);
}

void Engine::launch_plan(Lock& lock, Plan& plan, std::string& failure_of_plan) {
  inside_ = true;
  lock.unlock();
  double start = now_seconds();
  std::string failure;
  try {
    stepper_.launch(plan);
  } catch (...) {
    failure = current_reason();
  }
  double model = plan.launch_seconds;
  double host = now_seconds() - start - model;
  lock.lock();
  stats_.model_seconds += model;
  stats_.host_seconds += host;
  if (&plan == &ahead_) stats_.overlapped_seconds += host;
  failure_of_plan = std::move(failure);
  inside_ = false;
}

// Launches the next step ahead, so that the device has work while the host waits for this step,
// samples and plans. A row is wasted if sampling then draws another token or the request ends. That
// does no harm: the right token's keys and values overwrite the wasted row's, or no row ever reads
// them.
void Engine::launch_ahead(Lock& lock) {
  if (!failure_.empty() || !stepper_.session().chains() || stopping_ || paused_) return;
  double start = now_seconds();
  ahead_ = scheduler_.follow(queues_, plan_);
  double seconds = now_seconds() - start;
  stats_.host_seconds += seconds;
  stats_.overlapped_seconds += seconds;
  if (ahead_.empty()) return;
  ++stats_.chained_steps;
  launch_plan(lock, ahead_, ahead_failure_);
}

void Engine::prepare_next() {
  if (!failure_.empty() || !stepper_.session().asynchronous()) return;
  double start = now_seconds();
  try {
    scheduler_.prepare(queues_, plan_);
  } catch (...) {  // this fails all requests of the step, because any of them may be the cause
    std::string reason = current_reason();
    for (Request* request : std::vector<Request*>(queues_.active)) {
      if (!is_in_flight(*request)) finish_without_token(*request, WHERRY_ERROR, reason);
    }
  }
  double seconds = now_seconds() - start;
  stats_.host_seconds += seconds;
  stats_.overlapped_seconds += seconds + stepper_.mask_seconds();
}

// A step whose launch failed has no graph counts, so the sums stay as they are.
void Engine::count_graphs(const GraphCounts& graphs) {
  if (graphs.steps > graph_steps_) {
    stats_.graph_steps += graphs.steps - std::exchange(graph_steps_, graphs.steps);
  }
  if (graphs_given_up_.empty()) graphs_given_up_ = graphs.given_up;
}

void Engine::finish_step(Lock& lock) {
  inside_ = true;
  lock.unlock();
  StepResult result;
  result.failure = failure_;  // no launch can run now and change failure_
  if (result.failure.empty()) result = stepper_.collect(plan_);
  lock.lock();
  double start = now_seconds();
  double step = step_seconds(result, start);
  inside_ = false;
  launched_ = false;
  step_started_ = 0;
  ++stats_.steps;
  stats_.model_seconds += result.collect_seconds;
  stats_.sample_seconds += result.sample_seconds;
  stats_.candidate_rows += result.rows.candidates;
  stats_.whole_rows += result.rows.full_rows;
  stats_.readback_bytes += result.bytes_read;
  count_graphs(result.graphs);
  if (chains_given_up_.empty()) chains_given_up_ = result.chains_given_up;
  stats_.failed_steps = result.failure.empty() ? 0 : stats_.failed_steps + 1;
  try {
    accept(result, step);
  } catch (...) {
    fail_step(current_reason());
  }
  plan_ = Plan();
  const bool ahead = !ahead_.empty();
  settle_ahead(result);
  double seconds = now_seconds() - start;
  stats_.host_seconds += seconds;
  if (ahead) stats_.overlapped_seconds += result.sample_seconds + seconds;
  settled_.notify_all();
}

// Returns the seconds that the model took. A step that was launched ahead starts when the previous
// one ends.
double Engine::step_seconds(const StepResult& result, double now) {
  double sampled = now - result.sample_seconds;
  double began = std::max(plan_.launched, std::exchange(last_ended_, sampled));
  bool here = !stepper_.session().asynchronous();
  return here ? plan_.launch_seconds + result.collect_seconds : sampled - began;
}

// Drops requests from the plan of the step that was launched ahead: it is valid only for requests
// that continue with the token that the device drew.
void Engine::settle_ahead(const StepResult& result) {
  bool some = false;
  for (PlannedRows& entry : ahead_.entries) {
    auto row = static_cast<size_t>(entry.chosen_from);
    bool right = entry.request != nullptr && row < result.chosen.size() &&
                 entry.request->tokens.back() == result.chosen[row];
    if (!right) {
      entry.request = nullptr;
      ++stats_.wasted_rows;
    }
    some = some || right;
  }
  if (some || ahead_.empty()) return;
  stepper_.session().discard();
  ahead_ = Plan();
  ahead_failure_.clear();
}

void Engine::accept(StepResult& result, double seconds) {
  if (!result.failure.empty()) return fail_step(result.failure);
  for (Request*& request : plan_.restores) accept_restore(*std::exchange(request, nullptr));
  StepWork work;
  for (const PlannedRows& entry : plan_.entries) {
    if (entry.request == nullptr) continue;
    work.add(entry.request->computed, entry.rows + static_cast<int64_t>(entry.draft_tokens.size()));
  }
  const bool sees = plan_.entry == Entry::kSee;
  const bool timed = plan_.entry == Entry::kForward && !after_see_;
  // A device computes an image until the step after it, whose time includes the image's.
  if (sees || after_see_) {
    budget_.record_image(seconds);
    if (sees) seen_for_ = plan_.entries[0].request->user;
    queues_.waiting.charge(seen_for_, budget_.tokens_in(seconds));
  }
  after_see_ = sees && stepper_.session().asynchronous();
  if (timed) budget_.record(work, seconds);
  for (size_t i = 0; i < plan_.entries.size(); ++i) {
    if (plan_.entries[i].request == nullptr) continue;
    sees ? accept_image(plan_.entries[i]) : accept_entry(plan_.entries[i], result.outcomes[i]);
    plan_.entries[i].request = nullptr;  // the request may have been deleted
  }
}

void Engine::accept_restore(Request& request) {
  if (request.aborted) return finish_without_token(request, WHERRY_ABORTED);
  int64_t page = cache_.page_size();
  int64_t before = request.computed;
  request.computed = std::max(before, (request.sequence.committed + request.restored) * page);
  auto tokens = static_cast<uint64_t>(request.computed - before);
  if (request.prefilled == 0) request.cached_tokens += static_cast<int32_t>(tokens);
  stats_.cached_tokens += tokens;
  stats_.disk_tokens += tokens;
  request.restored = 0;
  cache_.commit(request.sequence, request.span());
}

void Engine::accept_entry(PlannedRows& entry, Outcome& outcome) {
  Request& request = *entry.request;
  if (request.aborted) return finish_without_token(request, WHERRY_ABORTED);
  if (request.state == RequestState::kEncoding) {
    request.state = RequestState::kPrefilling;
    return;
  }
  const bool prefilling = request.state == RequestState::kPrefilling;
  const int64_t before = request.computed;
  auto drafted = static_cast<int64_t>(entry.draft_tokens.size());
  // A recurrent state that has read a rejected draft token is of no use. The sequence goes back to
  // the state before the step; the next step computes the tokens that count again.
  const bool back = cache_.recurrent() && outcome.accepted < drafted;
  cache_.settle(request.sequence, back);
  if (!back) request.computed += entry.rows + outcome.accepted;
  if (prefilling) {
    int64_t again = std::min(request.computed, request.prefilled) - before;
    stats_.recomputed_tokens += static_cast<uint64_t>(std::max<int64_t>(again, 0));
    stats_.prefill_tokens += static_cast<uint64_t>(entry.rows);
  }
  queues_.waiting.charge(request.user, request.computed - before);
  if (drafted > 0 && !entry.forced) {
    request.drafts.record(drafted, outcome.accepted);
    request.drafted_tokens += static_cast<int32_t>(drafted);
    request.accepted_tokens += static_cast<int32_t>(outcome.accepted);
    stats_.drafted_tokens += static_cast<uint64_t>(drafted);
    stats_.accepted_tokens += static_cast<uint64_t>(outcome.accepted);
  }
  cache_.commit(request.sequence, request.span());
  if (cache_.recurrent()) save_state(request, prefilling, !outcome.samples.empty());
  accept_samples(request, outcome);
}

// Saves a recurrent state after a whole page as a snapshot. Snapshots stay where other prompts
// differ and at the end of a prompt; in between, one moves with the request. Copying it once a page
// adds at most a sixteenth to the traffic of the state's own updates.
void Engine::save_state(Request& request, bool prefilling, bool sampled) {
  const int64_t page = cache_.page_size();
  if (request.computed % page != 0) return;
  request.saved = request.computed;
  const int64_t end = (static_cast<int64_t>(request.tokens.size()) - 1) / page * page;
  const bool last = !sampled && request.computed == end;  // the same prompt can continue here
  const bool keep = prefilling && (last || request.computed == request.branch);
  StateChanges changes;
  cache_.snapshot(request.sequence, changes, keep);
  for (const auto& copy : changes.slots) stepper_.session().copy_slot(copy.from, copy.to);
}

void Engine::accept_samples(Request& request, Outcome& outcome) {
  for (const Sample& sample : outcome.prompt) {
    emit(request, WHERRY_RUNNING, &sample).event.prompt = 1;
    ++request.prompt_reported;
  }
  if (!outcome.embedding.empty()) {
    QueuedEvent& event = emit(request, WHERRY_DONE, nullptr);
    event.embedding = std::move(outcome.embedding);
    return remove(request, true);
  }
  for (const Sampled& sampled : outcome.samples) {
    request.state = RequestState::kRunning;
    ++stats_.decode_tokens;
    emit(request, sampled.finish, &sampled.sample);
    if (sampled.finish != WHERRY_RUNNING) return remove(request, true);
  }
  if (!outcome.error.empty()) finish_without_token(request, WHERRY_ERROR, outcome.error);
}

void Engine::fail_step(const std::string& reason) {
  auto fail = [&](Request& request) {
    bool aborted = request.aborted;
    finish_without_token(request, aborted ? WHERRY_ABORTED : WHERRY_ERROR, aborted ? "" : reason);
  };
  for (PlannedRows& entry : plan_.entries) {
    if (entry.request == nullptr) continue;
    if (entry.image != nullptr) images_.drop(entry.image->tile_name);
    fail(*std::exchange(entry.request, nullptr));
  }
  for (Request*& request : plan_.restores) {
    if (request != nullptr) fail(*std::exchange(request, nullptr));
  }
}

// ---- the engine's own thread: start, stop and reset ----

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
  this_thread::set_name("wherry-engine");
  this_thread::run_soon();
  Lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stopping_ || (has_work() && !paused_); });
    if (stopping_) return;
    if (!plan_step()) continue;
    run_model(lock);
    finish_step(lock);
  }
}

}  // namespace wherry
