#include "app/chat/app.h"

#include <algorithm>

#include "app/chat/request_error.h"
#include "app/chat/status.h"
#include "app/template/code_points.h"
#include "app/template/json_text.h"

namespace wherry::app {

namespace {

constexpr size_t kEvents = 64;  // taken at once

std::string aborted() {
  return error_json("The request was aborted", "server_error", "", "aborted");
}

}  // namespace

App::App(std::string name, Speech speech, ModelPtr model, EnginePtr engine, int64_t context,
         int64_t vocab_size, MakeGrammarCompiler make)
    : speech_(std::move(speech)),
      grammars_(*speech_.tokenizer, vocab_size, std::move(make)),
      core_model_(std::move(model)),
      engine_(std::move(engine)) {
  model_.name = std::move(name);
  model_.abilities = {speech_.tokenizer.get(), speech_.eos_ids, speech_.defaults, vocab_size,
                      context};
  model_.dialect = speech_.dialect.get();
  check(wherry_engine_start(engine_.get()));
  planner_ = std::make_unique<Thread>([this] { plan_requests(); });
  listener_ = std::make_unique<Thread>([this] { hear(); });
}

App::~App() {
  std::vector<uint64_t> running;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (auto& [id, request] : requests_) request->aborted = true;
    for (const auto& [id, choice] : choices_) running.push_back(id);
  }
  planned_.notify_all();
  planner_.reset();  // what waits is refused
  for (const RequestPtr& request : requests()) abandon(request);
  grammars_.close();
  for (uint64_t id : running) wherry_engine_abort(engine_.get(), id);
  wherry_engine_wake(engine_.get());
  listener_.reset();  // hears the last events
  engine_.reset();
}

int64_t App::start(std::string json, Listener listener) {
  auto request = std::make_shared<Request>();
  request->json = std::move(json);
  request->listener = std::move(listener);
  {
    const std::lock_guard lock(mutex_);
    if (closing_) throw Error(WHERRY_NOT_FOUND, "the app is being closed");
    request->id = next_id_++;
    requests_[request->id] = request;
    waiting_.push_back(request);
  }
  planned_.notify_one();
  return request->id;
}

bool App::abort(int64_t id) {
  RequestPtr request;
  std::vector<uint64_t> running;
  {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return false;
    request = found->second;
    request->aborted = true;
    running = request->core_ids;
  }
  abandon(request);
  for (uint64_t core_id : running) {
    if (core_id != 0) wherry_engine_abort(engine_.get(), core_id);
  }
  return true;
}

void App::trim() {
  grammars_.forget();
  check(wherry_engine_clear_cache(engine_.get()));
}

std::string App::stats() const {
  wherry_stats stats{};
  stats.size = sizeof stats;
  check(wherry_engine_stats(engine_.get(), &stats));
  size_t requests = 0;
  {
    const std::lock_guard lock(mutex_);
    requests = requests_.size();
  }
  const auto count = [](uint64_t value) { return Value(static_cast<int64_t>(value)); };
  return jinja::to_compact_json(jinja::make_dict({
      {"model", model_.name},
      {"context", model_.abilities.context},
      {"chat", model_.dialect != nullptr},
      {"requests", Value::size(requests)},
      {"waiting", stats.waiting},
      {"prefilling", stats.prefilling},
      {"running", stats.running},
      {"steps", count(stats.steps)},
      {"prompt_tokens", count(stats.prompt_tokens)},
      {"cached_tokens", count(stats.cached_tokens)},
      {"decode_tokens", count(stats.decode_tokens)},
      {"finished", count(stats.finished)},
      {"preemptions", count(stats.preemptions)},
      {"pages_total", stats.pages_total},
      {"pages_free", stats.pages_free},
      {"pages_cached", stats.pages_cached},
      {"disk_problem", stats.disk_problem == nullptr ? Value() : Value(stats.disk_problem)},
      {"page_size", stats.page_size},
      {"model_seconds", stats.model_seconds},
      {"sample_seconds", stats.sample_seconds},
      {"host_seconds", stats.host_seconds},
  }));
}

// ---- the thread that plans ----

void App::plan_requests() {
  while (true) {
    RequestPtr request;
    {
      std::unique_lock lock(mutex_);
      planned_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      request = waiting_.front();
      waiting_.pop_front();
    }
    plan(request);
  }
}

std::vector<App::RequestPtr> App::requests() const {
  const std::lock_guard lock(mutex_);
  std::vector<RequestPtr> made;
  for (const auto& [id, request] : requests_) made.push_back(request);
  return made;
}

bool App::gone(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  return request->aborted;
}

void App::refuse(const RequestPtr& request, const std::string& error_json) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back({request, error_json});
  }
  wherry_engine_wake(engine_.get());
}

template <typename Work>
void App::attempt(const RequestPtr& request, const Work& work) {
  try {
    work();
  } catch (const jinja::Abandoned&) {
    refuse(request, aborted());
  } catch (const RequestError& error) {
    refuse(request, error_json(error));
  } catch (const Error& error) {
    const bool own = error.status() == WHERRY_INVALID_ARGUMENT;
    refuse(request, own ? error_json(RequestError(error.what()))
                        : error_json(error.what(), "server_error", "", "engine_error"));
  } catch (const std::exception& error) {
    refuse(request, error_json(error.what(), "server_error", "", "internal_error"));
  }
}

void App::plan(const RequestPtr& request) {
  attempt(request, [&] {
    if (gone(request)) throw jinja::Abandoned();
    Value given;
    try {
      given = jinja::from_json(jinja::well_formed(request->json), jinja::Halves::kKept);
    } catch (const jinja::Failure& failure) {
      throw RequestError(std::string("The body is not JSON: ") + failure.what(), "",
                         "invalid_json");
    }
    Plan made = plan_of(given, model_, [&] { return gone(request); });
    if (made.constraint) {
      compile(request, std::move(made));
    } else {
      submit(request, std::move(made));
    }
  });
}

void App::compile(const RequestPtr& request, Plan plan) {
  const auto kept = std::make_shared<Plan>(std::move(plan));
  grammars_.compile(request->id, *kept->constraint,
                    [this, request, kept](HeldToPtr grammar, const std::exception_ptr& error) {
                      attempt(request, [&] {
                        if (error) std::rethrow_exception(error);
                        kept->held_to = std::move(grammar);
                        submit(request, std::move(*kept));
                      });
                    });
  if (gone(request)) abandon(request);  // it was aborted when it did not wait yet
}

// ---- any thread ----

void App::abandon(const RequestPtr& request) {
  if (grammars_.abandon(request->id)) refuse(request, aborted());
}

void App::add(uint64_t id, const Plan& plan, const Job& job) {
  wherry_params params = plan.sampling.record();
  params.seed = job.seed;
  params.max_tokens = job.max_tokens;
  wherry_mask mask{};  // the core's, once it is given
  if (plan.held_to) {
    mask = plan.held_to->mask(plan.sampling.stop_ids);
    params.mask = &mask;
  }
  check(wherry_engine_add(engine_.get(), id, job.prompt.data(), job.prompt.size(), &params));
}

void App::submit(const RequestPtr& request, Plan plan) {
  auto generation =
      std::make_shared<Generation>(std::move(plan), *speech_.tokenizer, request->listener);
  const Plan& made = generation->plan();
  {
    const std::lock_guard lock(mutex_);
    if (request->aborted) throw jinja::Abandoned();
    request->generation = generation;
    ready_.push_back({request, ""});  // before its first event
    for (size_t i = 0; i < made.jobs.size(); ++i) {
      request->core_ids.push_back(next_core_id_);
      choices_[next_core_id_++] = {request, i};
    }
  }
  const std::vector<uint64_t> ids = request->core_ids;
  for (size_t i = 0; i < made.jobs.size(); ++i) {
    try {
      add(ids[i], made, made.jobs[i]);
    } catch (...) {
      for (size_t k = 0; k < i; ++k) wherry_engine_abort(engine_.get(), ids[k]);
      throw;
    }
  }
  if (gone(request)) {  // it was aborted meanwhile, when the core did not know all of it
    for (uint64_t id : ids) wherry_engine_abort(engine_.get(), id);
  }
  wherry_engine_wake(engine_.get());
}

// ---- the thread that hears ----

void App::hear() {
  std::vector<wherry_event> events(kEvents);
  while (true) {
    size_t n = 0;
    const int status = wherry_engine_wait(engine_.get(), events.data(), events.size(), -1, &n);
    std::deque<Ready> ready;
    {
      const std::lock_guard lock(mutex_);
      ready.swap(ready_);
    }
    for (const Ready& one : ready) open(one);
    if (status == WHERRY_OK) take(events.data(), n);
    const std::lock_guard lock(mutex_);
    if (closing_ && requests_.empty()) return;
    if (status != WHERRY_OK) return;  // the engine is gone
  }
}

void App::open(const Ready& ready) {
  const RequestPtr& request = ready.request;
  if (ready.failure.empty()) return request->generation->open();
  if (request->generation) {
    request->generation->fail(ready.failure);
  } else {
    request->listener(ready.failure, true);
  }
  end(request);
}

void App::end(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  for (uint64_t id : request->core_ids) choices_.erase(id);
  requests_.erase(request->id);
}

void App::take(const wherry_event* events, size_t n) {
  std::vector<RequestPtr> touched;
  for (size_t i = 0; i < n; ++i) {
    const wherry_event& event = events[i];
    std::pair<RequestPtr, size_t> choice;
    {
      const std::lock_guard lock(mutex_);
      const auto found = choices_.find(event.id);
      if (found == choices_.end()) continue;
      choice = found->second;
      if (event.finish != WHERRY_RUNNING) {  // nothing more is heard of it
        choice.first->core_ids[choice.second] = 0;
        choices_.erase(found);
      }
    }
    const auto& [request, index] = choice;
    Generation& generation = *request->generation;
    const bool before = generation.ended(index);
    try {
      const bool failed = event.finish == WHERRY_ERROR;
      generation.push(index, event, failed ? wherry_last_error() : "");
    } catch (const Failed& failure) {
      std::vector<uint64_t> others;
      {
        const std::lock_guard lock(mutex_);
        others = request->core_ids;
      }
      for (uint64_t id : others) {
        if (id != 0) wherry_engine_abort(engine_.get(), id);
      }
      generation.fail(error_json(failure.message,
                                 failure.request ? "invalid_request_error" : "server_error", "",
                                 failure.code));
      end(request);
      continue;
    }
    if (!before && generation.ended(index) && generation.must_abort(index)) {
      wherry_engine_abort(engine_.get(), event.id);
    }
    if (std::find(touched.begin(), touched.end(), request) == touched.end()) {
      touched.push_back(request);
    }
  }
  for (const RequestPtr& request : touched) {
    request->generation->flush();
    if (request->generation->done()) end(request);
  }
}

}  // namespace wherry::app
