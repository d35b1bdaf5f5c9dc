#include "scheduling/scheduler.h"

#include <algorithm>
#include <map>
#include <utility>

namespace wherry {

namespace {

constexpr int64_t kWithPrediction = 8;  // maximum number of draft tokens from a predicted output
constexpr int64_t kForced = 8;  // maximum number of forced tokens of a grammar mask in one step

// Orders requests for scheduling; preemption takes the reverse order.
bool goes_before(const Request* a, const Request* b) {
  return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
}

int64_t source_size(const Request& request) { return static_cast<int64_t>(request.source.size()); }

}  // namespace

Plan Scheduler::plan(RequestQueues& queues) {
  plan_ = Plan();
  plan_.changes = prepared_;
  admit(queues, true, plan_.changes);
  choose_entry(queues);
  plan_.entry = last_;
  if (plan_.entry == Entry::kSee) {
    const PlannedRows entry = seeing(queues);
    images_.place(entry.image->tile_name, entry.image_first, entry.image->features);
    plan_.entries.push_back(entry);
    prepared_ = StateChanges();
    return std::move(plan_);
  }
  Left left{limits_.max_rows, limits_.logit_rows, 0, {}, {}};
  // Active requests that wait for a step of another kind.
  for (const Request* request : queues.active) {
    if (request->state == RequestState::kRunning) left.running.add(request->computed, 1);
  }
  left.work = left.running;
  auto unfinished = static_cast<int64_t>(queues.active.size() + queues.waiting.size());
  left.prompts = std::min(unfinished, limits_.max_batch) - left.running.rows;
  if (plan_.entry == Entry::kForward) {
    left_out_ = limits_.complete_images && !left_out_ && leaves_out_running(queues, left);
    if (!left_out_) plan_running(queues, left);
  }
  plan_prompts(queues, left);
  plan_draft_tokens(left);
  // Keeps the state changes of an empty plan even if their request has ended: other requests use
  // its pages now.
  prepared_ = plan_.empty() ? plan_.changes : StateChanges();
  return std::move(plan_);
}

void Scheduler::prepare(RequestQueues& queues, const Plan& in_flight) {
  // A recurrent state's snapshot at the end of the step could overwrite the slot that a copy is
  // about to read.
  if (cache_.recurrent()) return;
  for (const PlannedRows& entry : in_flight.entries) {
    if (entry.request == nullptr) continue;
    const Request& request = *entry.request;
    auto next = request.computed + entry.rows + static_cast<int64_t>(entry.draft_tokens.size()) + 1;
    bool runs = in_flight.entry == Entry::kForward && next <= request.most_cached();
    if (runs && !request.aborted) cache_.reserve_ahead(entry.request->sequence, next, 0);
  }
  admit(queues, false, prepared_);
}

Plan Scheduler::follow(const RequestQueues& queues, const Plan& in_flight) {
  Plan next;
  const bool others = in_flight.entry != Entry::kForward || !in_flight.restores.empty();
  if (others || cache_.recurrent()) return {};  // a recurrent state cannot be rolled back
  const Request* waits = queues.waiting.front();
  const bool urgent =
      waits && !queues.active.empty() && waits->priority > queues.active.back()->priority;
  // plan() may preempt a running request for this waiting one.
  if (urgent || (waits && over_share(*waits, queues))) return {};
  int32_t row = 0;
  std::vector<int32_t> last(in_flight.entries.size());  // the last result row of each entry
  for (size_t i = 0; i < last.size(); ++i) {
    row += static_cast<int32_t>(in_flight.entries[i].results);
    last[i] = row - 1;
  }
  for (Request* request : queues.active) {
    auto match = std::find_if(in_flight.entries.begin(), in_flight.entries.end(),
                              [&](const PlannedRows& entry) { return entry.request == request; });
    if (match == in_flight.entries.end() || !can_follow(*match)) return {};
    if (request->aborted || request->output_size() + 1 >= request->max_output) continue;
    auto position = static_cast<int64_t>(request->tokens.size());
    if (!cache_.reserve(request->sequence, position + 1, source_size(*request))) return {};
    next.entries.emplace_back(request, 1);
    next.entries.back().chosen_from = last[static_cast<size_t>(match - in_flight.entries.begin())];
  }
  return next;
}

bool Scheduler::can_follow(const PlannedRows& entry) const {
  const Request& request = *entry.request;
  bool draft_tokens = entry.max_draft_tokens > 0 || !entry.draft_tokens.empty();
  return entry.device_draws && entry.error.empty() && !draft_tokens &&
         !request.drafts.may_draft(own_drafts(request));
}

int64_t Scheduler::own_drafts(const Request& request) const {
  int64_t drafts = limits_.max_drafts;
  return request.lookup.has_prediction() ? std::max(drafts, kWithPrediction) : drafts;
}

Entry Scheduler::entry_of(const Request& request) const {
  if (request.state == RequestState::kEncoding) return Entry::kEncode;
  if (image_to_see(request) != nullptr) return Entry::kSee;
  return request.embed ? Entry::kEmbed : Entry::kForward;
}

// Chooses the kind of the step in round robin among those with requests. There is no step for an
// image that has no room: the requests before it, whose images are in its place, have steps then.
// There is none either while running requests have not had their share of the time, or after a step
// that left them out.
void Scheduler::choose_entry(const RequestQueues& queues) {
  bool there[kStepKinds] = {};
  for (const Request* request : queues.active) there[static_cast<int>(entry_of(*request))] = true;
  bool& sees = there[static_cast<int>(Entry::kSee)];
  sees = sees && seeing(queues).request != nullptr;
  const auto running = std::count_if(
      queues.active.begin(), queues.active.end(),
      [](const Request* request) { return request->state == RequestState::kRunning; });
  const auto prompts = static_cast<int64_t>(queues.active.size()) - running;
  sees = sees && budget_.may_see(running, prompts) && !(left_out_ && running > 0);
  int last = static_cast<int>(last_);
  for (int i = 1; i <= kStepKinds; ++i) {
    int next = (last + i) % kStepKinds;
    if (!there[next]) continue;
    last_ = static_cast<Entry>(next);
    return;
  }
}

bool Scheduler::belongs(const Request& request) const { return entry_of(request) == plan_.entry; }

// ---- admission of waiting requests ----

void Scheduler::admit(RequestQueues& queues, bool may_preempt, StateChanges& changes) {
  while (Request* request = queues.waiting.front()) {
    if (waits_for_prefix(*request, queues)) break;
    if (!find_room(*request, may_preempt, queues)) break;  // smaller requests do not overtake it
    begin(*request, queues, changes);
  }
}

// Finds room for the first waiting request, by preemption if that is allowed.
bool Scheduler::find_room(const Request& request, bool may_preempt, RequestQueues& queues) {
  for (;;) {
    const bool full = static_cast<int64_t>(queues.active.size()) >= limits_.max_batch;
    if (!full && can_admit(request, queues)) return true;
    if (!may_preempt) return false;
    Request* last = full ? queues.active.back() : nullptr;
    if (!last || last->priority >= request.priority) last = over_share(request, queues);
    if (!last) return false;
    preempt(*last, queues);
  }
}

// Returns the request to preempt so that each tenant gets a share: if the request's tenant has no
// running request, the youngest one of the tenant that runs most, else null. A tenant therefore
// never waits for a whole output of others. Null, too, if no tenant runs several requests.
Request* Scheduler::over_share(const Request& request, const RequestQueues& queues) const {
  std::map<uint64_t, int> running;
  Request* youngest = nullptr;
  for (Request* active : queues.active) {
    if (tenant_of(active->user) == tenant_of(request.user)) return nullptr;
    ++running[tenant_of(active->user)];
  }
  int most = 1;
  // Finds the last request among tenants that run equally many.
  for (Request* active : queues.active) {
    int count = running[tenant_of(active->user)];
    if (active->priority > request.priority || count < std::max(most, 2)) continue;
    youngest = active;
    most = count;
  }
  return youngest;
}

// Whether free pages suffice for the request's tokens so far, plus one page for each admitted
// request that still grows.
bool Scheduler::can_admit(const Request& request, const RequestQueues& queues) {
  if (queues.active.empty()) return true;
  auto size = static_cast<int64_t>(request.tokens.size());
  KvCache::Cached cached = cache_.cached(request.space, request.keys(), size - 1);
  int64_t pages = pages_for(std::max(size, source_size(request)), cache_.page_size());
  return cache_.has_room(pages - cached.in_use + static_cast<int64_t>(queues.active.size()));
}

// Whether an admitted request is about to compute another page of this request's prompt. Waiting
// pays off then: the page will be a prefix cache hit.
bool Scheduler::waits_for_prefix(const Request& request, const RequestQueues& queues) {
  if (!cache_.shares()) return false;
  auto most = static_cast<int64_t>(request.tokens.size()) - 1;
  const std::vector<int32_t>& keys = request.keys();
  int64_t cached = cache_.cached(request.space, keys, most).tokens;
  for (Request* other : queues.active) {
    if (other->state != RequestState::kPrefilling || !(other->space == request.space)) continue;
    auto size = static_cast<int64_t>(std::min(keys.size() - 1, other->keys().size()));
    auto differ = std::mismatch(keys.begin(), keys.begin() + size, other->keys().begin());
    const int64_t page = cache_.page_size();
    const int64_t shared = (differ.first - keys.begin()) / page * page;
    if (shared < cached + page) continue;
    // A recurrent state cannot be cut back: the other request must stop here for a snapshot.
    if (cache_.recurrent() && shared <= other->computed) continue;
    other->branch = shared;
    return true;
  }
  return false;
}

void Scheduler::begin(Request& request, RequestQueues& queues, StateChanges& changes) {
  queues.waiting.remove(request);
  auto& active = queues.active;
  active.insert(std::upper_bound(active.begin(), active.end(), &request, goes_before), &request);
  request.state = request.source.empty() ? RequestState::kPrefilling : RequestState::kEncoding;
  // The last token is always computed because its logits are needed; the whole prompt is computed
  // if its logprobs are requested.
  int64_t most = static_cast<int64_t>(request.tokens.size()) - 1;
  if (request.wants_logprob_of(request.prompt_reported)) most = request.prompt_reported - 1;
  request.branch = cache_.known(request.space, request.keys(), most);
  request.computed = cache_.attach(request.sequence, request.space, request.keys(), most, changes);
  // Reserves the pages now, so that the next admissions do not count on the same ones. If pages are
  // lacking when the rows are planned, younger requests are preempted.
  cache_.reserve_ahead(request.sequence, static_cast<int64_t>(request.tokens.size()),
                       source_size(request));
  int64_t committed = request.sequence.committed;
  auto reserved =
      static_cast<int64_t>(request.sequence.pages.empty() ? 0 : request.sequence.pages[0].size());
  if (disk_ && reserved * cache_.page_size() >= most) {
    // Pages on disk are named by tokens, so they end before the first image.
    request.on_disk = disk_->prefetch(request.space, request.tokens, committed,
                                      std::min(most, request.text_size()));
    if ((committed + request.on_disk) * cache_.page_size() <= request.computed) request.on_disk = 0;
  }
  request.saved = request.computed;
  if (request.prefilled == 0) request.cached_tokens = static_cast<int32_t>(request.computed);
}

// ---- rows of the step ----

bool Scheduler::is_planned(const Request& request) const {
  const auto& restores = plan_.restores;
  return std::find(restores.begin(), restores.end(), &request) != restores.end() ||
         std::any_of(plan_.entries.begin(), plan_.entries.end(),
                     [&](const PlannedRows& entry) { return entry.request == &request; });
}

// Allocates the pages that the request needs for `tokens` tokens, preempting younger requests if
// necessary. Returns false if the request itself was preempted.
bool Scheduler::make_room(Request& request, int64_t tokens, RequestQueues& queues) {
  while (!cache_.reserve(request.sequence, tokens, source_size(request))) {
    Request* victim = queues.active.back();
    if (is_planned(*victim)) victim = &request;
    preempt(*victim, queues);
    if (victim == &request) return false;
  }
  return true;
}

void Scheduler::preempt(Request& request, RequestQueues& queues) {
  request.prefilled = std::max(request.prefilled, request.computed);
  cache_.release(request.sequence, request.span(), true);
  request.computed = 0;
  request.on_disk = 0;
  request.state = RequestState::kWaiting;
  auto& active = queues.active;
  active.erase(std::find(active.begin(), active.end(), &request));
  queues.waiting.requeue(request);
  ++preemptions_;
}

void Scheduler::plan_running(RequestQueues& queues, Left& left) {
  // This copy is needed because preemption changes the list.
  const std::vector<Request*> active = queues.active;
  int64_t waiting = left.running.rows;  // running requests without a row so far
  for (Request* request : active) {
    if (request->state != RequestState::kRunning || !belongs(*request)) continue;
    --waiting;
    // One row, or more after a recurrent state went back over a rejected draft token.
    const int64_t rows = std::min(request->pending(), left.rows - waiting);
    if (!make_room(*request, request->computed + rows, queues)) continue;
    plan_.entries.emplace_back(request, rows);
    left.work.extend(request->computed + 1, rows - 1);
    left.rows -= rows;
    --left.results;
  }
}

// Returns the end of the request's next chunk, in tokens, as far as snapshots of a recurrent state
// require it: where other prompts differ, then the prompt's last whole page, then its end.
int64_t Scheduler::snapshot_point(const Request& request) const {
  const auto size = static_cast<int64_t>(request.tokens.size());
  const int64_t page = cache_.page_size();
  for (int64_t point : {request.branch, (size - 1) / page * page}) {
    if (request.computed < point) return point;
  }
  return size;
}

int64_t Scheduler::chunk_of(const Request& request, const Left& left) const {
  if (request.state == RequestState::kEncoding) {
    return source_size(request) <= left.rows ? source_size(request) : 0;
  }
  if (limits_.bidirectional) return request.pending() <= left.rows ? request.pending() : 0;
  int64_t rows = std::min({request.pending(), left.rows, cache_.most_rows(request.computed)});
  if (cache_.recurrent()) rows = std::min(rows, snapshot_point(request) - request.computed);
  rows = rows_with_images(request, rows);
  rows = budget_.prompt_rows(left.running, left.work, left.prompts, request.computed, rows);
  while (rows > 0 && request.results_of(rows) > left.results) --rows;
  // A chunk ends with a whole page, where a preempted request can resume.
  int64_t rest = (request.computed + rows) % cache_.page_size();
  if (cache_.recurrent() && rows < request.pending() && rest < rows) rows -= rest;
  return limits_.complete_images ? rows_of_complete_images(request, rows, left) : rows;
}

void Scheduler::plan_prompts(RequestQueues& queues, Left& left) {
  const std::vector<Request*> active = queues.active;
  for (Request* request : active) {
    bool prompt =
        request->state == RequestState::kPrefilling || request->state == RequestState::kEncoding;
    if (!prompt || !belongs(*request)) continue;
    if (request->on_disk > 0) {
      plan_.restores.push_back(request);
      continue;
    }
    int64_t rows = chunk_of(*request, left);
    if (rows <= 0) continue;
    bool encodes = request->state == RequestState::kEncoding;
    if (!make_room(*request, encodes ? 0 : request->computed + rows, queues)) continue;
    plan_.entries.emplace_back(request, rows);
    if (!encodes) plan_.entries.back().image_rows = use_images(*request, rows);
    left.work.add(encodes ? 0 : request->computed, rows);
    left.rows -= rows;
    if (!encodes) left.results -= request->results_of(rows);
  }
}

// Returns the most draft tokens after an entry's rows, as far as snapshots of a recurrent state
// bound them: only a state after a whole page becomes one. If the last snapshot is far back, the
// rows end with the page.
int64_t Scheduler::drafts_to_snapshot(const PlannedRows& entry) const {
  constexpr int64_t kFar = 4;  // pages
  const int64_t page = cache_.page_size(), end = entry.request->computed + entry.rows;
  if (!cache_.recurrent() || end < entry.request->saved + kFar * page) return INT64_MAX;
  return (page - end % page) % page;
}

// Gives the step's remaining rows and result rows to draft tokens, as far as pages are free without
// eviction or preemption.
void Scheduler::plan_draft_tokens(Left& left) {
  if (plan_.entry != Entry::kForward) return;
  auto may_draft = [this](const PlannedRows& entry) {
    const Request& request = *entry.request;
    return request.state == RequestState::kRunning && entry.draws() &&
           (request.mask || request.drafts.may_draft(own_drafts(request)));
  };
  int64_t drafting = std::count_if(plan_.entries.begin(), plan_.entries.end(), may_draft);
  if (drafting == 0) return;
  DraftCost cost = budget_.draft_cost(left.running);
  cost.again = cache_.recurrent() ? cost.row : 0;
  for (PlannedRows& entry : plan_.entries) {
    if (!may_draft(entry)) continue;
    Request& request = *entry.request;
    int64_t room = request.max_output - request.output_size() - 1;
    int64_t fair = std::min(left.rows, left.results) / drafting--;
    int64_t most = std::min({fair, room, drafts_to_snapshot(entry)});
    int64_t drafts = request.drafts.next(most, own_drafts(request), cost);
    int64_t draft_tokens = request.mask ? std::max(drafts, std::min(most, kForced)) : drafts;
    if (draft_tokens <= 0) continue;
    const int64_t end = request.computed + entry.rows + draft_tokens;
    if (!cache_.reserve(request.sequence, end, 0) || !cache_.take_spare(request.sequence)) continue;
    entry.max_draft_tokens = draft_tokens;
    entry.most_drafts = drafts;
    left.rows -= draft_tokens;
    left.results -= draft_tokens;
  }
}

}  // namespace wherry
