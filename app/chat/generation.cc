#include "app/chat/generation.h"

#include <algorithm>

#include "app/value/json_text.h"

namespace wherry::app {

Generation::Generation(Plan plan, const Tokenizer& tokenizer, Listener listener)
    : plan_(std::move(plan)),
      listener_(std::move(listener)),
      reply_(plan_, tokenizer),
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
  for (const std::string& chunk : reply_.opening()) listener_(chunk, false);
}

void Generation::push(size_t choice, const wherry_event& event, const std::string& error) {
  Choice& one = choices_[choice];
  if (over_ || one.ended()) return;
  deltas_[choice].add(one.push(event, error));
  if (one.ended()) --open_;
}

Totals Generation::totals() const {
  Totals made;
  made.prompt = plan_.prompt_tokens;
  for (const Choice& choice : choices_) {
    made.sampled += choice.sampled;
    made.drafted += choice.drafted;
    made.accepted += choice.accepted;
    made.reasoning += choice.reasoning;
    // The first choice of a prompt computes the prompt; the other choices find it in the prefix
    // cache.
    if (choice.index() % plan_.n == 0) made.cached += choice.cached;
    made.queue = std::max(made.queue, choice.queue);
    made.prefill = std::max(made.prefill, choice.prefill);
    made.decode = std::max(made.decode, choice.decode);
  }
  return made;
}

std::string Generation::about() const {
  const auto list = [](const Texts& texts) {
    Values made;
    for (const std::string& text : texts) made.emplace_back(text);
    return json::make_list(std::move(made));
  };
  return json::to_compact_json(json::make_dict({{"prompt_tokens", plan_.prompt_tokens},
                                                {"choices", Value::size(plan_.jobs.size())},
                                                {"dropped_messages", plan_.dropped_messages},
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
      listener_(reply_.chunk(delta), last);
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
  listener_(plan_.stream ? reply_.closing(totals()) : reply_.whole(deltas_, totals()), true);
}

void Generation::fail(const std::string& error_json) {
  if (over_) return;
  over_ = true;
  open_ = 0;
  listener_(error_json, true);
}

}  // namespace wherry::app
