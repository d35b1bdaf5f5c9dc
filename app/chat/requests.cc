#include "app/chat/requests.h"

#include <algorithm>
#include <atomic>

#include "app/chat/vector_response.h"
#include "app/request/request_error.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

// Returns an object with another value of a field.
Value with_field(const Value& object, const char* name, const Value& value) {
  if (!object.is_dict()) return object;
  std::vector<std::pair<Value, Value>> items = object.dict().items;
  items.emplace_back(name, value);
  return json::make_dict(std::move(items));
}

// Returns the number of texts in a field; a list of token ids is one.
int64_t texts_in(const Fields& fields, const char* name) {
  const Value* given = fields.find(name);
  const bool several = given != nullptr && given->is_sequence() && !given->items().empty() &&
                       !given->items().front().is_integer();
  return several ? static_cast<int64_t>(given->items().size()) : 1;
}

// Summarizes a request for text.
RequestSummary summary(const Fields& fields, int64_t prompts) {
  return {prompts * fields.integer("n").value_or(1), fields.truth("stream")};
}

std::string aborted() {
  return error_json("The request was aborted", "server_error", "", "aborted");
}

}  // namespace

Value request_of(std::string_view json) {
  try {
    return json::from_json(unicode::well_formed(json), json::Halves::kKept);
  } catch (const json::Failure& failure) {
    throw RequestError(std::string("The body is not JSON: ") + failure.what(), "", "invalid_json");
  }
}

RequestSummary check_request(const std::string& task, const Value& request) {
  switch (task.empty() ? task_of(request) : task_named(task)) {
    case VectorTask::kEmbed:
      return {texts_in(checked_embedding(request), "input"), false};
    case VectorTask::kClassify:
      return {texts_in(checked_classify(request), "input"), false};
    case VectorTask::kRerank:
      return {texts_in(checked_rerank(request), "documents"), false};
    case VectorTask::kScore:
      return {texts_in(checked_score(request), "text_2"), false};
    case VectorTask::kNone:
      break;
  }
  if (task != "completion") return summary(checked_chat(request), 1);
  const Fields fields = checked_completion(request);
  return summary(fields, texts_in(fields, "prompt"));
}

int64_t Requests::start(std::string json, Listener listener) {
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

void Requests::begin(int64_t id, std::string json, const RequestOptions& options, Opened opened,
                     Listener listener) {
  auto request = std::make_shared<Request>();
  request->id = id;
  request->json = std::move(json);
  request->options = options;
  request->opened = std::move(opened);
  request->listener = std::move(listener);
  {
    const std::lock_guard lock(mutex_);
    if (closing_) throw Error(WHERRY_NOT_FOUND, "the app is being closed");
    requests_[id] = request;
  }
  try {
    submit_plan(request);
  } catch (...) {
    if (is_submitted(request)) return attempt(request, [] { throw; });
    end(request);
    throw;
  }
}

bool Requests::abort(int64_t id) {
  RequestPtr request;
  {
    const std::lock_guard lock(mutex_);
    const auto match = requests_.find(id);
    if (match == requests_.end()) return false;
    request = match->second;
    request->aborted = true;
  }
  abandon(request);
  for (const uint64_t core_id : submitted(request)) core_.abort(core_id);
  return true;
}

size_t Requests::size() const {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}

std::vector<uint64_t> Requests::close() {
  std::vector<uint64_t> running;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (auto& [id, request] : requests_) request->aborted = true;
    for (const auto& [id, choice] : choices_) running.push_back(id);
  }
  planned_.notify_all();
  return running;
}

void Requests::abandon() {
  for (const RequestPtr& request : requests()) abandon(request);
}

bool Requests::over() const {
  const std::lock_guard lock(mutex_);
  return closing_ && requests_.empty();
}

// ---- functions of the planning thread ----

bool Requests::plan_next() {
  RequestPtr request;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    request = waiting_.front();
    waiting_.pop_front();
  }
  plan(request);
  return true;
}

void Requests::plan_all() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      planned_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
    }
    plan_next();
  }
}

std::vector<Requests::RequestPtr> Requests::requests() const {
  const std::lock_guard lock(mutex_);
  std::vector<RequestPtr> result;
  for (const auto& [id, request] : requests_) result.push_back(request);
  return result;
}

std::vector<uint64_t> Requests::submitted(const RequestPtr& request) const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> ids = request->core_ids;
  ids.erase(std::remove(ids.begin(), ids.end(), 0), ids.end());
  return ids;
}

bool Requests::gone(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  return request->aborted;
}

bool Requests::is_submitted(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  return request->response != nullptr;
}

void Requests::refuse(const RequestPtr& request, const std::string& error_json) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back({request, error_json});
  }
  core_.wake();
}

template <typename Work>
void Requests::attempt(const RequestPtr& request, const Work& work) {
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

void Requests::plan(const RequestPtr& request) {
  attempt(request, [&] { submit_plan(request); });
}

void Requests::submit_plan(const RequestPtr& request) {
  if (gone(request)) throw jinja::Abandoned();
  const Value given = request_of(std::exchange(request->json, {}));
  const std::string& named = request->options.task;
  const VectorTask task = named.empty() ? task_of(given) : task_named(named);
  if (task != VectorTask::kNone) return submit_vectors(request, task, given);
  Plan plan = plan_of(given, model_, [&] { return gone(request); }, request->options);
  if (plan.constraint) {
    compile(request, std::move(plan));
  } else {
    submit(request, std::move(plan));
  }
}

void Requests::compile(const RequestPtr& request, Plan plan) {
  const auto kept = std::make_shared<Plan>(std::move(plan));
  grammars_.compile(
      request->id, *kept->constraint,
      [this, request, kept](CompiledGrammarPtr grammar, const std::exception_ptr& error) {
        attempt(request, [&] {
          if (error) std::rethrow_exception(error);
          kept->grammar = std::move(grammar);
          submit(request, std::move(*kept));
        });
      });
  // The client aborted the request before it was registered as waiting.
  if (gone(request)) abandon(request);
}

// ---- functions of any thread ----

void Requests::abandon(const RequestPtr& request) {
  if (grammars_.abandon(request->id)) refuse(request, aborted());
}

void Requests::add(uint64_t id, const Plan& plan, const Job& job, const PromptImages* images) {
  wherry_params params = plan.sampling.record();
  params.seed = job.seed;
  params.max_tokens = job.max_tokens;
  params.source = job.source.data();
  params.n_source = job.source.size();
  if (images != nullptr) {
    params.images = images->spans.data();
    params.n_images = images->spans.size();
  }
  wherry_mask mask{};  // the core owns the mask after it was submitted
  if (plan.grammar) {
    mask = plan.grammar->mask(plan.sampling.stop_ids);
    params.mask = &mask;
  }
  core_.add(id, job.prompt, params);
}

void Requests::submit(const RequestPtr& request, Plan plan) {
  // The core copies images; they are freed when the last job has been added.
  struct Images {
    std::shared_ptr<const PromptImages> images;
    std::atomic<size_t> jobs;
  };
  const auto left = std::make_shared<Images>();
  left->images = std::move(plan.images);
  left->jobs = plan.jobs.size();
  auto generation =
      std::make_shared<Generation>(std::move(plan), *model_.abilities.tokenizer, request->listener);
  const Plan& of_it = generation->plan();
  submit(request, generation, of_it.jobs.size(), [this, generation, left](size_t job, uint64_t id) {
    add(id, generation->plan(), generation->plan().jobs[job], left->images.get());
    if (--left->jobs == 0) left->images.reset();
  });
}

void Requests::submit_vectors(const RequestPtr& request, VectorTask task, const Value& given) {
  const std::string& name = request->options.model;
  auto response = std::make_shared<VectorResponse>(
      vector_plan(task, name.empty() ? given : with_field(given, "model", name), model_.vectors,
                  [&] { return gone(request); }),
      request->listener, request->options);
  submit(request, response, response->jobs(),
         [this, response](size_t job, uint64_t id) { response->add(job, id, core_); });
}

void Requests::submit(const RequestPtr& request, std::shared_ptr<Response> response, size_t n,
                      std::function<void(size_t job, uint64_t id)> add) {
  {
    const std::lock_guard lock(mutex_);
    if (request->aborted) throw jinja::Abandoned();
    request->response = std::move(response);
    request->jobs = n;
    request->add = std::move(add);
    ready_.push_back({request, ""});  // the request is listed before its first event arrives
  }
  refill(request);
  // The client aborted the request while only some of its jobs were submitted.
  if (gone(request)) {
    for (const uint64_t id : submitted(request)) core_.abort(id);
  }
  core_.wake();
}

void Requests::refill(const RequestPtr& request) {
  std::vector<std::pair<size_t, uint64_t>> added;
  {
    const std::lock_guard lock(mutex_);
    if (request->aborted) return;
    const size_t window = request->options.window > 0 ? request->options.window : request->jobs;
    while (request->core_ids.size() < request->jobs &&
           request->core_ids.size() - request->ended < window) {
      added.emplace_back(request->core_ids.size(), next_core_id_);
      choices_[next_core_id_] = {request, request->core_ids.size()};
      request->core_ids.push_back(next_core_id_++);
    }
  }
  for (size_t i = 0; i < added.size(); ++i) {
    try {
      request->add(added[i].first, added[i].second);
    } catch (...) {
      for (const uint64_t id : submitted(request)) core_.abort(id);
      throw;
    }
  }
}

// ---- functions of the event thread ----

void Requests::hear(const wherry_event* events, size_t n, const std::string& error) {
  std::deque<Ready> ready;
  {
    const std::lock_guard lock(mutex_);
    ready.swap(ready_);
  }
  for (const Ready& one : ready) open(one);
  take(events, n, error);
}

void Requests::open(const Ready& ready) {
  const RequestPtr& request = ready.request;
  if (ready.failure.empty()) {
    if (request->opened) request->opened(request->response);
    return request->response->open();
  }
  if (request->response) {
    request->response->fail(ready.failure);
  } else {
    request->listener(ready.failure, true);
  }
  end(request);
}

void Requests::end(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  for (uint64_t id : request->core_ids) choices_.erase(id);
  requests_.erase(request->id);
}

void Requests::take(const wherry_event* events, size_t n, const std::string& error) {
  std::vector<RequestPtr> touched;
  for (size_t i = 0; i < n; ++i) {
    const wherry_event& event = events[i];
    std::pair<RequestPtr, size_t> choice;
    {
      const std::lock_guard lock(mutex_);
      const auto match = choices_.find(event.id);
      if (match == choices_.end()) continue;
      choice = match->second;
      if (event.finish != WHERRY_RUNNING) {  // no event follows for this choice
        choice.first->core_ids[choice.second] = 0;
        ++choice.first->ended;
        choices_.erase(match);
      }
    }
    const auto& [request, index] = choice;
    Response& response = *request->response;
    const bool before = response.ended(index);
    try {
      response.push(index, event, event.finish == WHERRY_ERROR ? error : "");
    } catch (const Failed& failure) {
      for (const uint64_t id : submitted(request)) core_.abort(id);
      response.fail(error_json(failure.message,
                               failure.request ? "invalid_request_error" : "server_error", "",
                               failure.code));
      end(request);
      continue;
    }
    if (!before && response.ended(index) && response.must_abort(index)) {
      core_.abort(event.id);
    }
    if (std::find(touched.begin(), touched.end(), request) == touched.end()) {
      touched.push_back(request);
    }
  }
  for (const RequestPtr& request : touched) {
    request->response->flush();
    if (request->response->done()) {
      end(request);
    } else if (request->options.window > 0) {
      attempt(request, [&] { refill(request); });
    }
  }
}

}  // namespace wherry::app
