#include "app/chat/generation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "app/chat/parts_reply.h"
#include "app/chat/reply.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

std::unique_ptr<const Writer> writer_of(const Plan& plan, const Tokenizer& tokenizer) {
  if (plan.in_parts) return std::make_unique<PartsReply>(plan);
  return std::make_unique<Reply>(plan, tokenizer);
}

// Returns a sampling parameter as the shortest decimal number that gives it.
Value shortest(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(value));
  return std::strtod(text, nullptr);
}

}  // namespace

Generation::Generation(Plan plan, const Tokenizer& tokenizer, Listener listener)
    : plan_(std::move(plan)),
      listener_(std::move(listener)),
      writer_(writer_of(plan_, tokenizer)),
      deltas_(plan_.jobs.size()),
      open_(plan_.jobs.size()) {
  const auto stops = std::make_shared<StopAutomaton>(plan_.stops, plan_.keeps_stops);
  choices_.reserve(plan_.jobs.size());
  for (size_t i = 0; i < plan_.jobs.size(); ++i) {
    choices_.emplace_back(i, plan_, tokenizer, stops);
    deltas_[i].index = i;
  }
}

void Generation::open() {
  if (!plan_.stream) return;
  for (const std::string& chunk : writer_->opening()) listener_(chunk, false);
}

void Generation::push(size_t choice, const wherry_event& event, const std::string& error) {
  Choice& one = choices_[choice];
  if (over_ || one.ended()) return;
  const std::lock_guard lock(mutex_);
  last_ = Clock::now();
  if (!first_) first_ = last_;
  deltas_[choice].add(one.push(event, error));
  if (one.ended()) --open_;
}

Totals Generation::totals() const {
  const std::lock_guard lock(mutex_);
  Totals result;
  result.prompt = plan_.prompt_tokens;
  for (const Choice& choice : choices_) {
    result.sampled += choice.sampled;
    result.longest = std::max(result.longest, choice.sampled);
    if (result.finish.empty()) result.finish = choice.finish();
    result.drafted += choice.drafted;
    result.accepted += choice.accepted;
    result.reasoning += choice.reasoning;
    // The first choice of a prompt computes the prompt; the other choices find it in the prefix
    // cache.
    if (choice.index() % plan_.n == 0) result.cached += choice.cached;
    result.queue = std::max(result.queue, choice.queue);
    result.prefill = std::max(result.prefill, choice.prefill);
    result.decode = std::max(result.decode, choice.decode);
  }
  if (first_) {
    using Seconds = std::chrono::duration<double>;
    result.since_first = Seconds(Clock::now() - *first_).count();
    result.since_last = Seconds(Clock::now() - *last_).count();
  }
  return result;
}

std::string Generation::about() const {
  const auto list = [](const Texts& texts) {
    Values values;
    for (const std::string& text : texts) values.emplace_back(text);
    return json::make_list(std::move(values));
  };
  const wherry_params& params = plan_.sampling.params;
  int64_t longest = 0;
  for (const Job& job : plan_.jobs) longest = std::max<int64_t>(longest, job.max_tokens);
  return json::to_compact_json(
      json::make_dict({{"prompt_tokens", plan_.prompt_tokens},
                       {"choices", Value::size(plan_.jobs.size())},
                       {"n", Value::size(plan_.n)},
                       {"room", plan_.room},
                       {"max_tokens", longest},
                       {"dropped_messages", plan_.dropped_messages},
                       {"logprobs", plan_.logprobs},
                       {"temperature", shortest(params.temperature)},
                       {"top_p", shortest(params.top_p)},
                       {"presence_penalty", shortest(params.presence_penalty)},
                       {"frequency_penalty", shortest(params.frequency_penalty)},
                       {"adapted", list(plan_.adapted)},
                       {"ignored", list(plan_.ignored)}}));
}

void Generation::flush() {
  if (over_) return;
  if (plan_.stream) {
    for (Delta& delta : deltas_) {
      if (delta.empty()) continue;
      bool last = done() && !plan_.include_usage;
      // The remaining deltas, if several choices ended together.
      for (const Delta& other : deltas_) {
        last = last && (other.empty() || other.index <= delta.index);
      }
      if (last) over_ = true;
      listener_(writer_->chunk(delta), last);
      const size_t index = delta.index;
      delta = Delta();
      delta.index = index;
    }
  }
  if (done()) close();
}

void Generation::close() {
  if (over_) return;
  over_ = true;
  listener_(plan_.stream ? writer_->closing(totals()) : writer_->complete(deltas_, totals()), true);
}

void Generation::fail(const std::string& error_json) {
  if (over_) return;
  over_ = true;
  open_ = 0;
  listener_(error_json, true);
}

}  // namespace wherry::app
