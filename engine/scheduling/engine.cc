#include "scheduling/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cache/disk/disk_store.h"
#include "cache/open_session.h"
#include "speculation/draft_block.h"
#include "speculation/draft_model.h"
#include "support/clock.h"
#include "support/error.h"

namespace wherry {

namespace {

wherry_event event_of(const Request& request, wherry_finish finish, const Sample* sample) {
  wherry_event event{};
  event.id = request.id;
  event.token = -1;
  event.finish = finish;
  event.cached_tokens = request.cached_tokens;
  event.drafted_tokens = request.drafted_tokens;
  event.accepted_tokens = request.accepted_tokens;
  if (sample == nullptr) return event;
  event.token = sample->token;
  event.logprob = sample->logprob;
  for (const auto& [token, logprob] : sample->top) {
    event.top_ids[event.n_top] = token;
    event.top_logprobs[event.n_top++] = logprob;
  }
  return event;
}

void add_times(const RequestTimes& times, double now, wherry_event& event) {
  double started = times.started == 0 ? now : times.started;
  double first = times.first_token == 0 ? now : times.first_token;
  event.queue_seconds = static_cast<float>(started - times.added);
  event.prefill_seconds = static_cast<float>(first - started);
  event.decode_seconds = static_cast<float>(now - first);
}

KvCacheConfig cache_config(const EngineConfig& config) {
  return {config.kv_tokens, config.max_batch, config.prefill_chunk, config.prefix_cache,
          config.max_drafts > 0};
}

SchedulerLimits scheduler_limits(const EngineConfig& config, const Metadata& metadata) {
  SchedulerLimits limits;
  limits.max_batch = config.max_batch;
  limits.max_rows = config.prefill_chunk;
  limits.logit_rows = std::min<int64_t>(metadata.logit_rows, config.prefill_chunk);
  limits.max_drafts = config.max_drafts;
  limits.bidirectional = metadata.bidirectional;
  limits.complete_images = metadata.takes("last_visible");
  return limits;
}

std::unique_ptr<Session> session_of(const Model& model, const KvCache& cache,
                                    const EngineConfig& config) {
  SchedulerLimits limits = scheduler_limits(config, model.metadata());
  return open_session(
      model, cache,
      {limits.max_rows, limits.max_batch, limits.logit_rows, config.context, config.image_rows});
}

std::unique_ptr<Drafter> drafter_of(std::shared_ptr<const Model> draft, const Metadata& metadata,
                                    const EngineConfig& config) {
  if (!draft) {
    if (!metadata.has(Entry::kDraft)) return nullptr;
    return std::make_unique<DraftBlock>(BatchShape(metadata));
  }
  const Metadata& its = draft->metadata();
  if (its.vocab_size != metadata.vocab_size) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("the draft model's vocabulary has ", its.vocab_size, " tokens, the model's ",
                       metadata.vocab_size, ": give one with the same tokenizer"));
  }
  if (its.recurrent() || !its.has(Entry::kForward)) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("the draft model ", its.name, " has a state that cannot go back"));
  }
  if (its.has(Entry::kEncode)) {
    throw Error(WHERRY_INVALID_ARGUMENT, concat("the draft model ", its.name,
                                                " is an encoder-decoder, which reads a source"));
  }
  KvCacheConfig cache = cache_config(config);
  cache.drafts = false;
  return std::make_unique<DraftModel>(std::move(draft), cache, config.context);
}

std::unique_ptr<DiskTier> disk_of(const Model& model, KvCache& cache, Session& session,
                                  const EngineConfig& config) {
  if (config.cache_dir.empty() || !config.prefix_cache) return nullptr;
  if (!DiskTier::suits(model.metadata())) return nullptr;
  DiskStoreOptions options;
  options.folder = config.cache_dir;
  options.max_bytes = static_cast<uint64_t>(config.cache_bytes);
  options.block_bytes = DiskTier::block_bytes(session, cache.groups());
  try {
    BlockFolder(options.folder, options.max_bytes).check();
  } catch (const Error& error) {
    throw Error(WHERRY_INVALID_ARGUMENT, concat("prefixes cannot be kept on disk: ", error.what()));
  }
  return std::make_unique<DiskTier>(std::make_unique<DiskStore>(options), model, session, cache);
}

}  // namespace

Engine::Engine(std::shared_ptr<const Model> model, std::shared_ptr<const Model> draft,
               const EngineConfig& config)
    : model_(std::move(model)),
      config_(config),
      cache_(model_->metadata(), cache_config(config)),
      images_(config.image_rows),
      budget_(config.max_slowdown, config.max_step_seconds),
      stepper_(session_of(*model_, cache_, config),
               drafter_of(std::move(draft), model_->metadata(), config), budget_,
               BatchShape(model_->metadata())),
      disk_(disk_of(*model_, cache_, stepper_.session(), config)),
      scheduler_(scheduler_limits(config, model_->metadata()), cache_, images_, budget_,
                 disk_.get()) {
  if (disk_) stepper_.use(*disk_);
}

Engine::~Engine() {
  stop();
  Lock lock(mutex_);
  if (disk_ && !launched_) disk_->save(INT64_MAX);
  closing_ = true;
  events_changed_.notify_all();
  settled_.wait(lock, [this] { return waiters_ == 0; });
}

// ---- requests: add and abort ----

void Engine::check_prompt(const int32_t* tokens, size_t n, bool embed) const {
  if (tokens == nullptr || n == 0) throw Error(WHERRY_INVALID_ARGUMENT, "the prompt has no tokens");
  const size_t answer = embed ? 0 : 1;
  if (n + answer > static_cast<size_t>(config_.context)) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("the prompt has ", n, " tokens; the context is ", config_.context,
                       embed ? "" : ", of which at least one is the answer's"));
  }
  const int64_t vocab = model_->metadata().vocab_size;
  for (size_t i = 0; i < n; ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    throw Error(WHERRY_INVALID_ARGUMENT, concat("token ", i, " of the prompt is ", tokens[i],
                                                "; accepted are 0..", vocab - 1));
  }
}

void Engine::check_request(const Request& request) const {
  const Metadata& metadata = model_->metadata();
  Problems problems;
  auto source = static_cast<int64_t>(request.source.size());
  auto need = [&](bool ok, auto... text) {
    if (!ok) problems.add(text...);
  };
  if (request.embed) {
    need(metadata.has(Entry::kEmbed), metadata.name, " was compiled without embeddings");
  } else {
    need(metadata.has(Entry::kForward), metadata.name, " writes no text: it gives embeddings");
  }
  need((source > 0) == metadata.has(Entry::kEncode), "the source has ", source, " tokens; ",
       metadata.has(Entry::kEncode) ? "this model reads one" : "this model reads none");
  need(source <= config_.context, "the source has ", source, " tokens; the context is ",
       config_.context);
  int64_t rows = std::max(source, metadata.bidirectional ? request.prompt_size : 0);
  need(rows <= config_.prefill_chunk, rows, " tokens must go into one step, which has ",
       config_.prefill_chunk, " (prefill_chunk)");
  need(request.space.adapter <= metadata.adapters, "adapter ", request.space.adapter,
       "; there are ", metadata.adapters);
  const int64_t lacking = cache_.lacking(request.most_cached(), source);
  need(lacking == 0, "a prompt of ", request.prompt_size, " tokens and ", request.max_output,
       " of output take ", lacking, " pages of the cache, which has ", cache_.total(), " (",
       config_.kv_tokens, " tokens): give fewer max_tokens or more kv_tokens");
  problems.raise(WHERRY_INVALID_ARGUMENT, "the request cannot be served");
}

void Engine::add(uint64_t id, const int32_t* tokens, size_t n, const wherry_params& params) {
  std::vector<int32_t> prompt(tokens, tokens == nullptr ? tokens : tokens + n);
  auto request = std::make_unique<Request>(id, std::move(prompt), params,
                                           model_->metadata().vocab_size, config_.context);
  check_prompt(tokens, n, params.embed != 0);
  check_request(*request);
  request->images = checked_images(params, n);
  request->times.added = now_seconds();
  Lock lock(mutex_);
  if (requests_.count(id) != 0) {
    throw Error(WHERRY_INVALID_ARGUMENT, concat("request ", id, " is still running"));
  }
  request->name_images(image_names_);
  Request& added = *requests_.emplace(id, std::move(request)).first->second;
  added.arrival = ++arrivals_;
  try {
    queues_.waiting.push(added);
  } catch (...) {
    requests_.erase(id);
    throw;
  }
  work_.notify_one();
}

void Engine::abort(uint64_t id) {
  Lock lock(mutex_);
  auto it = requests_.find(id);
  if (it == requests_.end())
    throw Error(WHERRY_NOT_FOUND, concat("no request ", id, " is running"));
  Request& request = *it->second;
  if (is_in_flight(request)) {
    // The step in flight writes its pages, so they are freed when the step ends.
    request.aborted = true;
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
  images_.clear();
  stepper_.session().discard();
  ahead_ = Plan();
  ahead_failure_.clear();
  if (disk_) disk_->clear_queue();
  cache_.clear();
  if (stepper_.drafter()) stepper_.drafter()->clear();
  finished_.clear();
  stats_ = wherry_stats{};
}

void Engine::clear_cache() {
  Lock lock(mutex_);
  cache_.clear();
  std::set<int32_t> in_use;
  for (const auto& [id, request] : requests_) {
    for (const ImageSpan& image : request->images) in_use.insert(image.tile_name);
  }
  images_.clear(in_use);
  stepper_.session().trim(cache_.free_pages(), images_.free_rows());
}

void Engine::abort_all() {
  while (!requests_.empty()) finish_without_token(*requests_.begin()->second, WHERRY_ABORTED);
}

bool Engine::is_in_flight(const Request& request) const {
  if (!launched_) return false;
  const auto& restores = plan_.restores;
  return std::find(restores.begin(), restores.end(), &request) != restores.end() ||
         std::any_of(plan_.entries.begin(), plan_.entries.end(),
                     [&](const PlannedRows& entry) { return entry.request == &request; });
}

void Engine::remove(Request& request, bool keep_pages) {
  auto& active = queues_.active;
  active.erase(std::remove(active.begin(), active.end(), &request), active.end());
  queues_.waiting.remove(request);
  if (disk_ && keep_pages) {
    disk_->enqueue(request.space, request.tokens, std::min(request.computed, request.text_size()));
  }
  cache_.release(request.sequence, request.span(), keep_pages);
  request.state = RequestState::kFinished;
  if (stepper_.drafter()) finished_.push_back(request.id);
  for (PlannedRows& entry : ahead_.entries) {
    if (entry.request == &request) entry.request = nullptr;
  }
  requests_.erase(request.id);
  ++stats_.finished;
  work_.notify_one();
}

// Ends a request. The prefix cache does not keep the pages of a failed request, because they may be
// wrong.
void Engine::finish_without_token(Request& request, wherry_finish reason,
                                  const std::string& error) {
  emit(request, reason, nullptr, error);
  remove(request, reason != WHERRY_ERROR);
}

// ---- events: emit, wait and collect ----

Engine::QueuedEvent& Engine::emit(Request& request, wherry_finish finish, const Sample* sample,
                                  const std::string& error) {
  double now = now_seconds();
  bool first = sample != nullptr && request.times.first_token == 0;
  if (first || finish == WHERRY_DONE) request.times.first_token = now;
  events_.push_back({event_of(request, finish, sample), error, {}});
  add_times(request.times, now, events_.back().event);
  events_changed_.notify_all();
  return events_.back();
}

size_t Engine::return_events(wherry_event* events, size_t cap, std::string* error) {
  if (events == nullptr && cap > 0) throw Error(WHERRY_INVALID_ARGUMENT, "events is null");
  returned_.clear();
  size_t n = 0;
  for (; n < cap && !events_.empty(); ++n) {
    QueuedEvent& next = events_.front();
    events[n] = next.event;
    if (!next.error.empty()) *error = std::move(next.error);
    if (!next.embedding.empty()) {
      returned_.push_back(std::move(next.embedding));
      events[n].embedding = returned_.back().data();
      events[n].n_embedding = static_cast<int64_t>(returned_.back().size());
    }
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
  return return_events(events, cap, error);
}

void Engine::wake() {
  Lock lock(mutex_);
  // If no thread waits now, the next wait() returns at once: no wake is lost between two waits.
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
  stats.preemptions = scheduler_.preemptions();
  stats.pages_total = cache_.total();
  stats.pages_free = cache_.available() + cache_.idle();
  stats.pages_cached = cache_.idle();
  stats.state_slots = static_cast<int32_t>(cache_.slots());
  stats.state_slots_free = cache_.free_slots();
  stats.state_snapshots = cache_.snapshots();
  stats.page_size = static_cast<int32_t>(model_->metadata().page_size);
  stats.step_seconds = step_started_ == 0 ? 0 : now_seconds() - step_started_;
  if (!graphs_given_up_.empty()) stats.graphs_given_up = graphs_given_up_.c_str();
  if (!chains_given_up_.empty()) stats.chains_given_up = chains_given_up_.c_str();
  add_disk_stats(&stats);
  return stats;
}

void Engine::add_disk_stats(wherry_stats* stats) const {
  std::string problem;
  if (disk_ != nullptr) {
    const BlockStoreStats disk = disk_->stats();
    stats->disk_dropped = disk.dropped;
    problem = disk.problem;
  } else if (!config_.cache_dir.empty() && config_.prefix_cache) {
    problem = model_->metadata().recurrent()
                  ? "this model has a recurrent state, which is not stored in blocks of a prefix"
                  : "layers of this model do not see all tokens: what they keep is no block of a "
                    "prefix";
  }
  // Callers may keep the pointer, so every reported reason stays in memory; there are only a few.
  if (!problem.empty()) stats->disk_problem = disk_problems_.insert(problem).first->c_str();
}

}  // namespace wherry
