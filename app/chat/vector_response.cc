#include "app/chat/vector_response.h"

#include <utility>

#include "app/chat/choice.h"
#include "app/chat/sampling.h"
#include "app/request/request_error.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

VectorResponse::VectorResponse(VectorPlan plan, Listener listener, const RequestOptions& options)
    : plan_(std::move(plan)),
      user_(number_of(plan_.user)),
      salt_(number_of(plan_.salt)),
      listener_(std::move(listener)),
      results_(plan_.jobs.size()),
      ended_(plan_.jobs.size()),
      open_(plan_.jobs.size()) {
  set_owner(options, user_, salt_);
}

void VectorResponse::add(size_t job, uint64_t id, Core& core) const {
  const VectorJob& one = plan_.jobs[job];
  wherry_params params;
  wherry_params_init(&params);
  params.user = user_;
  params.salt = salt_;
  if (one.token < 0) {
    params.embed = 1;
  } else {
    params.max_tokens = 1;
    params.temperature = 0;
    params.allowed = &one.token;
    params.n_allowed = 1;
  }
  core.add(id, plan_.prompts[one.prompt], params);
}

void VectorResponse::push(size_t job, const wherry_event& event, const std::string& error) {
  if (over_ || ended_[job]) return;
  VectorResult& result = results_[job];
  if (event.token >= 0) result.logprob = event.logprob;
  if (event.finish == WHERRY_RUNNING) return;
  ended_[job] = true;
  --open_;
  if (event.finish == WHERRY_ABORTED) throw Failed{"The request was aborted", "aborted", false};
  if (event.finish == WHERRY_ERROR) throw Failed{error, "engine_error", false};
  if (event.n_embedding > 0) {
    result.values.assign(event.embedding, event.embedding + event.n_embedding);
  }
}

Totals VectorResponse::totals() const {
  Totals result;
  for (const auto& prompt : plan_.prompts) result.prompt += static_cast<int64_t>(prompt.size());
  return result;
}

std::string VectorResponse::about() const {
  Values ignored(plan_.ignored.begin(), plan_.ignored.end());
  return json::to_compact_json(json::make_dict({{"prompt_tokens", totals().prompt},
                                                {"choices", Value::size(plan_.jobs.size())},
                                                {"ignored", json::make_list(std::move(ignored))}}));
}

void VectorResponse::flush() {
  if (over_ || !done()) return;
  over_ = true;
  try {
    listener_(plan_.complete(results_), true);
  } catch (const Error& damage) {
    listener_(error_json(damage.what(), "server_error", "", "engine_error"), true);
  }
}

void VectorResponse::fail(const std::string& error_json) {
  if (over_) return;
  over_ = true;
  open_ = 0;
  listener_(error_json, true);
}

}  // namespace wherry::app
